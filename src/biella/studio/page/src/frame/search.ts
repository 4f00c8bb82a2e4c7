// Search: the letters of the query in their order, better where they stand together or begin words.

export interface Found<T> {
  item: T;
  score: number;
}

/** How well a query fits a text; null if a letter is missing. */
export function score(query: string, text: string): number | null {
  const wanted = query.toLowerCase();
  const given = text.toLowerCase();
  const whole = given.indexOf(wanted);
  if (whole >= 0) {
    const begins = whole === 0 || /[._\s[]/.test(given[whole - 1] ?? "");
    return 100 + (begins ? 50 : 0) - given.length * 0.1;
  }
  let at = -1;
  let points = 0;
  for (const letter of wanted) {
    const next = given.indexOf(letter, at + 1);
    if (next < 0) return null;
    points += next === at + 1 ? 3 : /[._\s[]/.test(given[next - 1] ?? ".") ? 2 : 0;
    at = next;
  }
  return points - given.length * 0.1;
}

export function findBest<T>(query: string, items: readonly T[], text: (item: T) => string, most: number): T[] {
  if (!query.trim()) return items.slice(0, most);
  const found: Found<T>[] = [];
  for (const item of items) {
    const points = score(query.trim(), text(item));
    if (points !== null) found.push({ item, score: points });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, most).map(({ item }) => item);
}
