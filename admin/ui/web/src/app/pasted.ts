// What a text that was pasted into the palette can be.

export interface Pasted {
  request: boolean;
  /** What in the text may be a key, which is never sent; '' if nothing. */
  key: string;
}

const uuid = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** Long, in one piece, and neither a name, nor a path, nor an address. */
function opaque(word: string): boolean {
  if (!/^[\x21-\x7e]{20,}$/.test(word) || uuid.test(word)) return false;
  if (!word.includes('/')) return /[0-9A-Z_]/.test(word);
  return !word.startsWith('/') && !word.includes('://') && [/[0-9]/, /[A-Z]/, /[a-z]/].every((one) => one.test(word)); // Base64
}

/** A UUID or 32 hexadecimal digits name a request; a key may stand in a header or a command that was copied whole. */
export function kindOf(text: string): Pasted {
  const own = /slk_\w{8,}/.exec(text)?.[0];
  const words = text.split(/[\s'"]+/);
  // The id of a request is written into an address, which a key never is.
  return { request: !own && (uuid.test(text) || /^[\w-]{8,64}$/.test(text)), key: own ?? words.findLast(opaque) ?? '' };
}

/** SHA-256 in hexadecimal digits. crypto.subtle wants a secure context; elsewhere a plain one computes it. */
export async function hashOf(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const digest = crypto.subtle ? new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)) : sha256(bytes);
  return Array.from(digest, (b) => b.toString(16).padStart(2, '0')).join('');
}

/** SHA-256 (FIPS 180-4), for pages that are served over plain HTTP from another machine. */
export function sha256(message: Uint8Array): Uint8Array {
  const k: number[] = [];
  const h: number[] = [];
  for (let n = 2; k.length < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (!prime) continue;
    if (h.length < 8) h.push((Math.sqrt(n) % 1) * 2 ** 32 | 0);
    k.push((Math.cbrt(n) % 1) * 2 ** 32 | 0);
  }
  const size = ((message.length + 72) >> 6) << 6;
  const padded = new Uint8Array(size);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(size - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(size - 4, message.length << 3);
  const turn = (x: number, by: number) => (x >>> by) | (x << (32 - by));
  const w = new Int32Array(64);
  for (let at = 0; at < size; at += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = view.getInt32(at + 4 * i);
        continue;
      }
      const a = w[i - 15]!;
      const b = w[i - 2]!;
      w[i] = (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10)) + w[i - 7]! + w[i - 16]!;
    }
    const s = h.slice();
    for (let i = 0; i < 64; i++) {
      const [a, b, c, , e, f, g] = s as [number, number, number, number, number, number, number, number];
      const one = (s[7]! + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i]! + w[i]!) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      s.pop();
      s.unshift((one + two) | 0);
      s[4] = (s[4]! + one) | 0;
    }
    for (let i = 0; i < 8; i++) h[i] = (h[i]! + s[i]!) | 0;
  }
  const out = new Uint8Array(32);
  const written = new DataView(out.buffer);
  h.forEach((word, i) => written.setInt32(4 * i, word));
  return out;
}
