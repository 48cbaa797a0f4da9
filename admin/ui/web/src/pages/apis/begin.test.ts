import { expect, test } from 'vitest';
import { readDocument, slugOf, withAuth } from './begin';

test('a name becomes a part of a path', () => {
  expect(slugOf('Order Service v2')).toBe('order-service-v2');
  expect(slugOf('https://orders.example.com/graphql')).toBe('orders');
  expect(slugOf('–')).toBe('api');
  expect(slugOf('http://127.0.0.1:4000/graphql')).toBe('graphql');
  expect(slugOf('http://localhost:4000/')).toBe('api');
});

test('title and server are read from JSON and YAML', () => {
  expect(readDocument('{"openapi":"3.1.0","info":{"title":"Orders"},"servers":[{"url":"https://o.example/v1"}]}')).toEqual({ name: 'Orders', target: 'https://o.example/v1' });
  expect(readDocument('{"swagger":"2.0","host":"o.example","basePath":"/v1","schemes":["http"]}')).toEqual({ name: '', target: 'http://o.example/v1' });
  expect(readDocument('openapi: 3.0.3\ninfo:\n  version: "1"\n  title: "Orders"\nservers:\n  - description: x\n    url: https://o.example/v1 # here\npaths: {}\n')).toEqual({ name: 'Orders', target: 'https://o.example/v1' });
  expect(readDocument('{"openapi":"3.1.0","servers":[{"url":"/v1"}]}', 'https://o.example/openapi.json')).toEqual({ name: '', target: 'https://o.example/v1' });
  expect(readDocument('{"openapi":"3.1.0","servers":[{"url":"/v1"}]}')).toEqual({ name: '', target: undefined });
  expect(readDocument('{"a":1}')).toBeUndefined();
  expect(readDocument('a: 1')).toBeUndefined();
});

test('one way to authenticate takes the place of another', () => {
  expect(JSON.parse(withAuth('{"name":"x","use_keyless":true}', 'basic'))).toEqual({ name: 'x', use_basic_auth: true });
  expect(JSON.parse(withAuth('{"use_basic_auth":true}', 'token'))).toEqual({});
});
