/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// What the development server needs: the address of a running admin, and an access key
// to sign in with where the browser has no session.
declare const process: { env: Record<string, string | undefined> };
const admin = process.env.SLUICE_ADMIN ?? 'http://127.0.0.1:9000';
const key = process.env.SLUICE_KEY;

// changeOrigin leaves Origin alone; the admin compares it with Host, so both are set.
const proxy = {
  target: admin,
  changeOrigin: true,
  headers: { origin: new URL(admin).origin, ...(key ? { authorization: key } : {}) },
};

export default defineConfig({
  base: './', // chunks find each other; the server writes the base path into the HTML
  plugins: [react()],
  server: { proxy: { '^/(api|portal|oauth|healthz)(/|$)': proxy } },
  build: {
    target: 'es2022',
    // These have light-dark(). What it is lowered to for others is resolved at the root, so
    // that a part of a page could not have the other theme, as the preview of a brand has.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0, // the policy permits no data: fonts or scripts
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // What nearly every page needs comes in one piece, not in a dozen. Parts that load
        // dialogs or drafts are not among it: the first page has neither.
        codeSplitting: {
          groups: [
            {
              name: 'base',
              test: (id: string) =>
                /node_modules\/(react|react-dom|scheduler|@tanstack\/(?!.*virtual)[^/]+|openapi-fetch|lucide-react)\//.test(id) ||
                /src\/(lib|text\/|api\/|styles\/|pages\/home\/|parts\/(Badge|Button|Card|Copy|Disclosure|EmptyState|ErrorPanel|fields|Link|ListPage|Loaded|Needs|Page|Picker|Skeleton|Tabs|Time|toasts|urlState)\.[^/]+$|app\/(?!Palette|Help|pasted)[^/]+$)/.test(id),
            },
          ],
        },
      },
    },
  },
  test: { include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
});
