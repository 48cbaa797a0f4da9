import { expect, test } from 'vitest';
import { Backlog, mostCharacters, mostResults } from './results';

const numbers = (b: Backlog) => b.shown.map((one) => one.n);

test('the oldest results are dropped', () => {
  const b = new Backlog();
  for (let i = 0; i < mostResults + 3; i++) b.add('x', i);
  expect(b.count).toBe(mostResults + 3);
  expect(b.dropped).toBe(3);
  expect(b.shown.length).toBe(mostResults);
  expect(numbers(b)[0]).toBe(4);
});

test('large results are bounded together, and the newest is kept', () => {
  const b = new Backlog();
  const large = 'x'.repeat(mostCharacters / 2);
  for (let i = 0; i < 4; i++) b.add(large, i);
  expect(numbers(b)).toEqual([3, 4]);
  b.add('y'.repeat(mostCharacters + 1), 5);
  expect(numbers(b)).toEqual([5]);
});

test('a pause counts on, and shows what came once it is over', () => {
  const b = new Backlog();
  b.add('a', 0);
  b.pause(true);
  b.add('b', 1);
  b.add('c', 2);
  expect(numbers(b)).toEqual([1]);
  expect([b.count, b.behind]).toEqual([3, 2]);
  b.pause(false);
  expect(numbers(b)).toEqual([1, 2, 3]);
  expect(b.behind).toBe(0);
});

test('a pause before the first result', () => {
  const b = new Backlog();
  b.pause(true);
  b.add('a', 0);
  expect([numbers(b), b.behind]).toEqual([[], 1]);
});

test('clearing forgets all, and leaves a pause', () => {
  const b = new Backlog();
  b.add('a', 0);
  b.pause(true);
  b.add('b', 0);
  b.clear();
  expect([b.count, b.behind, b.paused, numbers(b)]).toEqual([0, 0, true, []]);
  b.add('c', 0);
  expect(b.behind).toBe(1);
  b.pause(false);
  expect(numbers(b)).toEqual([1]);
});

test('the rate is that of the last seconds', () => {
  const b = new Backlog();
  for (let i = 0; i < 20; i++) b.add('x', i * 100);
  expect(b.rate(2000)).toBeCloseTo(10);
  for (let i = 0; i < 50; i++) b.add('x', 2000 + i * 100);
  expect(b.rate(6999)).toBeCloseTo(10);
  expect(b.rate(60_000)).toBe(0);
});
