// Arrows in three: straight ones for forces, arcs around their axis for torques, each with a rim in
// the color of the paper, so that it stands out from a body of its own color.

import * as THREE from "three";
import type { Group, Point3 } from "../protocol";
import { type Arrow, sizeOf } from "./arrows";

const SHAFT = 0.009; // of the extent: half its width
const HEAD = 0.062;
const RIM = 0.006;
const ARC = 1.55 * Math.PI;
const TUBE = 0.075; // of the radius of an arc

interface Straight {
  root: THREE.Group;
  shafts: THREE.Mesh[];
  heads: THREE.Mesh[];
}

export class ArrowMeshes {
  readonly group = new THREE.Group();
  readonly #materials: Record<Group, THREE.Material>;
  readonly #rim: THREE.Material;
  readonly #extent: number;
  readonly #forces: Straight[] = [];
  readonly #torques: THREE.Group[] = [];
  readonly #dots: THREE.Mesh[] = [];
  readonly #shaft = new THREE.CylinderGeometry(1, 1, 1, 12).translate(0, 0.5, 0);
  readonly #head = new THREE.ConeGeometry(1, 1, 20).translate(0, 0.5, 0);
  readonly #arc = new THREE.TorusGeometry(1, TUBE, 8, 48, ARC);
  readonly #arcRim = new THREE.TorusGeometry(1, 1.7 * TUBE, 8, 48, ARC);
  readonly #dot = new THREE.SphereGeometry(1, 20, 14);

  constructor(extent: number, dark: boolean, colors: Record<Group, string>) {
    this.#extent = extent;
    const make = (color: string) =>
      new THREE.MeshBasicMaterial({ color, depthTest: false, depthWrite: false, transparent: true });
    const of = (group: Group) => make(colors[group]);
    this.#materials = { joint: of("joint"), element: of("element"), load: of("load"), contact: of("contact") };
    this.#rim = make(dark ? "#15181c" : "#ffffff");
    this.group.renderOrder = 10;
  }

  /** Show arrows; `lengthOf` has the length of a force, or the radius of a torque, in m. */
  show(arrows: readonly Arrow[], contacts: readonly Point3[], lengthOf: (arrow: Arrow) => number): void {
    let forces = 0;
    let torques = 0;
    for (const arrow of arrows) {
      const length = lengthOf(arrow);
      if (!(length > 0.004 * this.#extent)) continue;
      if (arrow.kind === "force") this.#placeForce((this.#forces[forces++] ??= this.#makeForce()), arrow, length);
      else this.#placeTorque((this.#torques[torques++] ??= this.#makeTorque()), arrow, length);
    }
    this.#forces.forEach(({ root }, n) => (root.visible = n < forces));
    this.#torques.forEach((root, n) => (root.visible = n < torques));
    contacts.forEach((point, n) => {
      const dot = (this.#dots[n] ??= this.#add(this.#dot, this.group));
      dot.material = this.#materials.contact;
      dot.position.set(...point);
      dot.scale.setScalar(0.016 * this.#extent);
    });
    this.#dots.forEach((dot, n) => (dot.visible = n < contacts.length));
  }

  #add(geometry: THREE.BufferGeometry, parent: THREE.Group, order = 12): THREE.Mesh {
    const mesh = new THREE.Mesh(geometry, this.#rim);
    mesh.renderOrder = order;
    mesh.frustumCulled = false;
    parent.add(mesh);
    return mesh;
  }

  #makeForce(): Straight {
    const root = new THREE.Group();
    this.group.add(root);
    const pair = (geometry: THREE.BufferGeometry) => [this.#add(geometry, root, 11), this.#add(geometry, root)];
    return { root, shafts: pair(this.#shaft), heads: pair(this.#head) };
  }

  #placeForce({ root, shafts, heads }: Straight, arrow: Arrow, length: number): void {
    const extent = this.#extent;
    root.position.set(...arrow.at);
    root.quaternion.setFromUnitVectors(UP, new THREE.Vector3(...arrow.vector).divideScalar(sizeOf(arrow.vector)));
    const head = Math.min(HEAD * extent, 0.6 * length);
    const slim = head / (HEAD * extent);
    [shafts, heads].forEach((pair, isHead) => {
      pair.forEach((mesh, isInner) => {
        const rim = isInner ? 0 : RIM * extent;
        mesh.material = isInner ? this.#materials[arrow.group] : this.#rim;
        if (isHead) {
          mesh.position.y = length - head - 0.7 * rim;
          mesh.scale.set(0.42 * head + rim, head + 2 * rim, 0.42 * head + rim);
        } else {
          const half = SHAFT * extent * Math.max(slim, 0.5) + rim;
          mesh.scale.set(half, length - head, half);
        }
      });
    });
  }

  #makeTorque(): THREE.Group {
    const root = new THREE.Group();
    this.group.add(root);
    for (const [geometry, order] of [[this.#arcRim, 11], [this.#arc, 12]] as const) this.#add(geometry, root, order);
    for (const order of [11, 12]) {
      const head = this.#add(this.#head, root, order);
      // At the end of the arc, along it.
      head.position.set(Math.cos(ARC), Math.sin(ARC), 0);
      head.rotation.z = ARC + 0.12;
      head.scale.setScalar(1).multiply(order === 11 ? new THREE.Vector3(0.3, 0.62, 0.3) : new THREE.Vector3(0.22, 0.5, 0.22));
    }
    return root;
  }

  #placeTorque(root: THREE.Group, arrow: Arrow, radius: number): void {
    root.position.set(...arrow.at);
    root.quaternion.setFromUnitVectors(OUT, new THREE.Vector3(...arrow.vector).divideScalar(sizeOf(arrow.vector)));
    root.scale.setScalar(radius);
    root.children.forEach((part, n) => ((part as THREE.Mesh).material = n % 2 ? this.#materials[arrow.group] : this.#rim));
  }

  dispose(): void {
    for (const geometry of [this.#shaft, this.#head, this.#arc, this.#arcRim, this.#dot]) geometry.dispose();
    for (const material of [...Object.values(this.#materials), this.#rim]) material.dispose();
  }
}

const UP = new THREE.Vector3(0, 1, 0);
const OUT = new THREE.Vector3(0, 0, 1);
