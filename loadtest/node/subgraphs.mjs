// The subgraphs of federation.go, which the origin answers.
import { readFileSync } from 'node:fs'
import { parse } from 'graphql'

export const sdl = (name) => readFileSync(new URL(`${name}.graphql`, import.meta.url), 'utf8')

export const subgraphs = (origin) => ['products', 'reviews'].map((name) => (
  { name, url: `http://${origin}/${name}`, typeDefs: parse(sdl(name)) }
))
