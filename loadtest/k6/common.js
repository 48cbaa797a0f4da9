// What the scenarios share. All of them are open loops: requests start at their
// rate, whatever the answers take.
import http from 'k6/http';
import { check } from 'k6';

// What the runner says; see loadtest/README.md.
export const addr = __ENV.ADDR;
export const key = __ENV.KEY;
export const rate = Number(__ENV.RATE || 1000);

// arrival is a scenario at one rate.
export function arrival(perSecond, duration) {
	return { executor: 'constant-arrival-rate', rate: perSecond, timeUnit: '1s', duration, preAllocatedVUs: 64, maxVUs: 256 };
}

// call asks for the measured API with a token.
export function call(host, token) {
	return http.get(`http://${host}/bench/1k`, { headers: { Authorization: token }, responseType: 'text' });
}

// served checks an answer of the origin, whole.
export function served(res) {
	check(res, { 'status is 200': (r) => r.status === 200, 'body is whole': (r) => r.body && r.body.length === 1024 });
}
