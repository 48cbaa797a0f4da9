// Random keys, each seen once, beside traffic of a known key: the flood is
// refused, and the known key is served as if there were none.
import { check } from 'k6';
import { addr, key, rate, arrival, call, served } from './common.js';

export const options = {
	scenarios: {
		flood: { ...arrival(4 * rate, '5s'), exec: 'flood' },
		known: { ...arrival(rate, '5s'), exec: 'known' },
	},
	thresholds: { checks: ['rate==1'] },
	summaryTrendStats: ['med', 'p(99)', 'max'],
};

export function flood() {
	const token = `${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}`;
	check(call(addr, token), { 'unknown key is refused': (r) => r.status === 403 });
}

export function known() {
	served(call(addr, key));
}
