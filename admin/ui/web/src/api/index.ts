export { api, data, online, request, respond, versioned, type Options } from './client';
export { Failure, problemOf, type Problem } from './failure';
export { queryClient, useRead, useWrite, type Pulsed } from './query';
export type { components, paths } from '../api.gen';
