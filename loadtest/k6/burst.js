// A quiet start, a burst of four times the traffic, and quiet again: nothing may
// fail in the burst, and nothing may be left of it afterwards.
import { addr, key, rate, call, served } from './common.js';

export const options = {
	scenarios: {
		burst: {
			executor: 'ramping-arrival-rate', startRate: rate, timeUnit: '1s', preAllocatedVUs: 128, maxVUs: 512,
			stages: [
				{ target: rate, duration: '2s' }, { target: 4 * rate, duration: '200ms' }, { target: 4 * rate, duration: '2s' },
				{ target: rate, duration: '200ms' }, { target: rate, duration: '2s' },
			],
		},
	},
	thresholds: { checks: ['rate==1'] },
	summaryTrendStats: ['med', 'p(99)', 'max'],
};

export default function () {
	served(call(addr, key));
}
