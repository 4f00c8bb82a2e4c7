// Arguments of a block, as they are written in Python.

/**
 * Read arguments as they are written in Python, `k=2.0, signs="+-", limits=[-1, 1]`: numbers, texts,
 * True, False, None and lists. Null if it is something else.
 */
export function readArguments(text: string): Record<string, unknown> | null {
  let rest = text.trim();
  const found: Record<string, unknown> = {};
  while (rest) {
    const name = /^([A-Za-z_]\w*)\s*=\s*/.exec(rest);
    if (!name?.[1]) return null;
    const read = readValue(rest.slice(name[0].length));
    if (!read) return null;
    found[name[1]] = read.value;
    rest = read.rest.trimStart();
    if (rest && !rest.startsWith(",")) return null;
    rest = rest.slice(1).trimStart();
  }
  return found;
}

function readValue(text: string): { value: unknown; rest: string } | null {
  const plain = /^(?:(True|False|None)\b|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])|"([^"\\]*)"|'([^'\\]*)')/.exec(text);
  if (plain) {
    const [all, word, number, double, single] = plain;
    const words: Record<string, unknown> = { True: true, False: false, None: null };
    const value = word ? words[word] : number ? Number(number) : (double ?? single ?? "");
    return { value, rest: text.slice(all.length) };
  }
  const close = { "[": "]", "(": ")" }[text[0] ?? ""];
  if (!close) return null;
  const list: unknown[] = [];
  let rest = text.slice(1).trimStart();
  while (!rest.startsWith(close)) {
    const item = readValue(rest);
    if (!item) return null;
    list.push(item.value);
    rest = item.rest.trimStart();
    if (rest.startsWith(",")) rest = rest.slice(1).trimStart();
    else if (!rest.startsWith(close)) return null;
  }
  return { value: list, rest: rest.slice(1) };
}
