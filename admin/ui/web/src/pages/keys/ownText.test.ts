import { expect, it } from 'vitest';
import { ownOf } from './ownText';

it('takes the session out of an answer as it was sent, without what the server fills in', () => {
  const answer = '{"key_hash":"ab","data":{"alias":"a","quota_max":12345678901234567890,"quota_remaining":3,"date_created":"2026","own":{"n":1.50},"access_rights_array":[]}}\n';
  expect(ownOf(answer)).toBe('{\n  "alias": "a",\n  "quota_max": 12345678901234567890,\n  "own": {\n    "n": 1.50\n  }\n}');
});
