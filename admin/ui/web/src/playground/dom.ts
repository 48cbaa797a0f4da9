// Elements without a framework: the public page has to be small.

type Child = Node | string | false | undefined | null;
type Props = Record<string, unknown> & { class?: string };

/** Makes an element. Members that begin with "on" are listeners, others attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(name: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === false || value === null) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2).toLowerCase(), value as EventListener);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.filter((one): one is Node | string => typeof one === 'string' || one instanceof Node));
  return element;
}

/** Replaces what an element holds. */
export function fill(element: Element, ...children: Child[]) {
  element.replaceChildren(...children.filter((one): one is Node | string => typeof one === 'string' || one instanceof Node));
}
