// Builds the public page's script, which the gateway embeds: one file, without React.
import { defineConfig } from 'vite';

export default defineConfig({
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    target: 'es2022',
    outDir: 'dist-playground',
    emptyOutDir: true,
    reportCompressedSize: false,
    modulePreload: false,
    lib: { entry: 'src/playground/public.ts', formats: ['iife'], name: 'SluicePlayground', fileName: () => 'playground.js' },
  },
});
