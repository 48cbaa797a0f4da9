// Traffic of known keys at a fixed rate: what the rest of a day looks like.
import { addr, key, rate, arrival, call, served } from './common.js';

export const options = {
	scenarios: { steady: arrival(rate, '5s') },
	thresholds: { checks: ['rate==1'], dropped_iterations: ['count==0'] },
	summaryTrendStats: ['med', 'p(99)', 'max'],
};

export default function () {
	served(call(addr, key));
}
