import { expect, test } from 'vitest';
import { box, draw, planOf } from './plan';
import { text } from './text';

const fact = (source: string, value: string) => ({ rule: `data source ${source}`, value });

test('requests below a value wait for the one that has it', () => {
  const plan = planOf([{ rule: 'depth', value: '4' }, fact('users', 'user'), fact('news', 'news'), fact('todo list', 'user.todos'), fact('notes', 'user.todos.note'), fact('users', 'username.x')]);
  expect(plan.map((one) => `${one.n} ${one.source} ${one.level} ${one.after.join()}`)).toEqual(['1 users 0 ', '2 news 0 ', '3 todo list 1 1', '4 notes 2 3', '5 users 0 ']);
});

test('what is below the fields of a GraphQL source waits for it', () => {
  expect(planOf([fact('graph', ''), fact('rest', 'user'), fact('todos', 'me.todos')]).map((one) => one.after)).toEqual([[], [], [1]]);
});

test('requests that say their step wait for all of the step before', () => {
  const of = (rule: string, value: string, step: number, seen = '') => ({ rule, value, seen, from: `step ${step}` });
  const plan = planOf([of('subgraph users', 'me.name, me.id', 1, '{ me { name id } }'), of('subgraph news', 'news', 1), of('subgraph reviews', 'me.reviews', 2), of('the schema', '__schema', 1), of('data source x', 'me.reviews.text', 3)]);
  expect(plan.map((one) => `${one.source} ${one.level} ${one.after.join()}`)).toEqual(['users 0 ', 'news 0 ', 'reviews 1 1,2', 'the schema 0 ', 'x 2 3']);
  expect(plan[0]!.operation).toBe('{ me { name id } }');
});

test('an explanation without sources has no plan', () => {
  expect(planOf(undefined)).toEqual([]);
  expect(planOf([{ rule: 'rate', value: '100' }])).toEqual([]);
});

test('a request in words', () => {
  expect(text.fetch('users', '', [])).toBe('users for the answer, at once');
  expect(text.fetch('users', 'me.name, me.id', [1])).toBe('users for me.name and me.id, after request 1');
  expect(text.fetch('notes', 'a.b', [1, 2, 3])).toBe('notes for a.b, after requests 1, 2, and 3');
});

test('no box is over another, and the drawing holds all', () => {
  const plan = planOf([fact('a', 'a'), fact('b', 'b'), fact('c', 'a.c'), fact('d', 'b.d'), fact('e', 'a.c.e')]);
  for (const narrow of [false, true]) {
    const { boxes, width, height, lines } = draw(plan, narrow);
    const all = [...boxes.values()];
    expect(boxes.size).toBe(6);
    expect(lines.length).toBe(5);
    for (const one of all) {
      expect(one.x + box.width <= width && one.y + box.height <= height).toBe(true);
      for (const other of all) expect(one === other || Math.abs(one.x - other.x) >= box.width || Math.abs(one.y - other.y) >= box.height).toBe(true);
    }
  }
});
