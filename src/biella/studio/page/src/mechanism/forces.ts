// The forces of a mechanism in its scene: which are shown, and how long an arrow is.

import type { Group, Mechanism } from "../protocol";
import { ArrowMeshes } from "./arrow_meshes";
import { type Arrow, type Drawn, dropNoise, findArrows, Peak, sizeOf } from "./arrows";

const LONGEST = { force: 0.42, torque: 0.15 }; // of the extent: arrows of the largest values
const MOST_LONG = 2.5; // times that, where the scale is held
const NOTHING: Drawn = { arrows: [], contacts: [] };

/** What is drawn of forces. */
export interface Shown {
  groups: ReadonlySet<Group>;
  /** Times the automatic scale. */
  zoom: number;
  /** Keep the present scale, so that lengths can be compared over time. */
  held: boolean;
}

export class Forces {
  readonly #mechanism: Mechanism;
  readonly #extent: number;
  readonly #peaks = { force: new Peak(), torque: new Peak() };
  #values: ArrayLike<number> | null = null;
  #shown: Shown = { groups: new Set(), zoom: 1, held: false };
  readonly meshes: ArrowMeshes;

  constructor(mechanism: Mechanism, extent: number, dark: boolean, colors: Record<Group, string>) {
    this.#mechanism = mechanism;
    this.#extent = extent;
    this.meshes = new ArrowMeshes(extent, dark, colors);
  }

  take(values: ArrayLike<number> | null): void {
    this.#values = values;
  }

  show(shown: Shown): void {
    this.#shown = shown;
    if (!shown.held) for (const peak of Object.values(this.#peaks)) peak.value = 0;
  }

  /** Largest value at present, in N or N m. */
  peak(kind: Arrow["kind"]): number {
    return this.#peaks[kind].value;
  }

  /** Meters for each newton or newton meter. */
  scale(kind: Arrow["kind"]): number {
    const peak = this.peak(kind);
    return peak > 0 ? (this.#shown.zoom * LONGEST[kind] * this.#extent) / peak : 0;
  }

  /** Draw what acts at some poses; new values may change the scale. */
  draw(poses: ArrayLike<number>, isNew: boolean): void {
    const { groups, held } = this.#shown;
    const found = this.#values && groups.size ? findArrows(this.#mechanism.efforts ?? [], this.#values, poses) : NOTHING;
    const visible = dropNoise(found.arrows, this.#extent).filter((arrow) => groups.has(arrow.group));
    for (const kind of ["force", "torque"] as const) {
      const sizes = visible.filter((arrow) => arrow.kind === kind).map((arrow) => sizeOf(arrow.vector));
      if (isNew && !(held && this.peak(kind) > 0)) this.#peaks[kind].take(sizes);
    }
    this.meshes.show(visible, groups.has("contact") ? found.contacts : [], (arrow) =>
      Math.min(this.scale(arrow.kind) * sizeOf(arrow.vector), MOST_LONG * LONGEST[arrow.kind] * this.#extent),
    );
  }
}
