import { base, createStore } from '../lib';

export type Theme = 'system' | 'light' | 'dark';

/** The appearance. The server writes the cookie's into the HTML, so that nothing flashes. */
export const theme = createStore<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? 'system');

export function setTheme(next: Theme): void {
  document.documentElement.dataset.theme = next;
  document.cookie = `theme=${next}; Path=${base}; Max-Age=31536000; SameSite=Lax${location.protocol === 'https:' ? '; Secure' : ''}`;
  theme.set(next);
}

/** Whether dark colours are in force, for what cannot read CSS variables. */
export function isDark(): boolean {
  const now = theme.get();
  return now === 'dark' || (now === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}
