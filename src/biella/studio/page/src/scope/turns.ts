// Who draws in a frame. All scopes get new samples at once, 30 times a second, and frames are twice
// as many: half of the scopes in each leaves no frame late that is only busy with scopes.

/** Draws if there is something new; whether it was. */
export type Draw = () => boolean;

/** Let up to half of them draw, in turns; return who is next. */
export function drawSome(draws: readonly Draw[], next: number): number {
  const most = Math.ceil(draws.length / 2);
  let drawn = 0;
  let at = next % Math.max(draws.length, 1);
  for (let asked = 0; asked < draws.length && drawn < most; asked += 1) {
    if (draws[at]!()) drawn += 1;
    at = (at + 1) % draws.length;
  }
  return at;
}

const draws: Draw[] = [];
let next = 0;
let frame = 0;

function turn(): void {
  frame = requestAnimationFrame(turn);
  next = drawSome(draws, next);
}

/** Let something draw from now on; what is returned ends that. */
export function takeTurns(draw: Draw): () => void {
  if (draws.length === 0) frame = requestAnimationFrame(turn);
  draws.push(draw);
  return () => {
    draws.splice(draws.indexOf(draw), 1);
    if (draws.length === 0) cancelAnimationFrame(frame);
  };
}
