// Two gateways that share a store, and one key with a quota: together they admit
// exactly as many calls as it has.
import { Counter } from 'k6/metrics';
import { check } from 'k6';
import { addr, key, rate, arrival, call } from './common.js';

const quota = Number(__ENV.QUOTA);
const admitted = new Counter('admitted');

export const options = {
	scenarios: { race: arrival(rate, '4s') },
	thresholds: { checks: ['rate==1'], admitted: [`count==${quota}`] },
	summaryTrendStats: ['med', 'p(99)', 'max'],
};

export default function () {
	const res = call(__ITER % 2 ? addr : __ENV.OTHER, key);
	check(res, { 'admitted or refused for its quota': (r) => r.status === 200 || r.status === 403 });
	if (res.status === 200) {
		admitted.add(1);
	}
}
