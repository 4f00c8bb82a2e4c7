// Pushing a body: a drag from a point of it, with mouse or finger, is a force.

import * as THREE from "three";
import type { Point3 } from "../protocol";

const NEAR = 30; // px around a body that count as it: fingers are wide

export interface Pushed {
  body: number;
  /** In axes of the body. */
  point: Point3;
  /** From where the drag began, in m of the world. */
  drag: Point3;
  /** Where the pointer is, in px of the canvas. */
  x: number;
  y: number;
}

export interface PushHost {
  canvas: HTMLCanvasElement;
  camera: THREE.Camera;
  bodies(): THREE.Group[];
  /** What the pointer pushes now; null once it lets go. */
  pushed(pushed: Pushed | null): void;
}

export class Pusher {
  isOn = false;
  readonly #host: PushHost;
  readonly #ray = new THREE.Raycaster();
  readonly #plane = new THREE.Plane();
  readonly #begin = new THREE.Vector3();
  #pointer: number | null = null;
  #body = 0;
  #point = new THREE.Vector3();
  readonly #end = new AbortController();

  constructor(host: PushHost) {
    this.#host = host;
    // Before the controls of the camera see the event.
    const options = { capture: true, signal: this.#end.signal };
    host.canvas.addEventListener("pointerdown", (event) => this.#take(event), options);
    host.canvas.addEventListener("pointermove", (event) => this.#move(event), options);
    for (const kind of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      host.canvas.addEventListener(kind, (event) => this.#release(event), options);
    }
  }

  dispose(): void {
    this.stop();
    this.#end.abort();
  }

  stop(): void {
    if (this.#pointer === null) return;
    this.#pointer = null;
    this.#host.pushed(null);
  }

  #take(event: PointerEvent): void {
    if (!this.isOn || this.#pointer !== null || event.button !== 0) return;
    const at = this.#aim(event);
    const hit = this.#hit() ?? this.#near(at);
    if (!hit) return; // the camera turns, as without pushing
    event.stopImmediatePropagation();
    event.preventDefault();
    this.#host.canvas.focus();
    this.#host.canvas.setPointerCapture(event.pointerId);
    this.#pointer = event.pointerId;
    const body = this.#host.bodies()[hit.body]!;
    this.#body = hit.body;
    this.#point = body.worldToLocal(hit.at.clone());
    this.#plane.setFromNormalAndCoplanarPoint(this.#host.camera.getWorldDirection(new THREE.Vector3()), hit.at);
    this.#ray.ray.intersectPlane(this.#plane, this.#begin);
    this.#tell(event, [0, 0, 0]);
  }

  #move(event: PointerEvent): void {
    if (event.pointerId !== this.#pointer) return;
    event.stopImmediatePropagation();
    this.#aim(event);
    const at = this.#ray.ray.intersectPlane(this.#plane, new THREE.Vector3());
    if (at) this.#tell(event, at.sub(this.#begin).toArray() as Point3);
  }

  #release(event: PointerEvent): void {
    if (event.pointerId !== this.#pointer) return;
    event.stopImmediatePropagation();
    this.stop();
  }

  #tell(event: PointerEvent, drag: Point3): void {
    const { left, top } = this.#host.canvas.getBoundingClientRect();
    const point = this.#point.toArray() as Point3;
    this.#host.pushed({ body: this.#body, point, drag, x: event.clientX - left, y: event.clientY - top });
  }

  #aim(event: PointerEvent): THREE.Vector2 {
    const { left, top, width, height } = this.#host.canvas.getBoundingClientRect();
    const at = new THREE.Vector2((2 * (event.clientX - left)) / width - 1, 1 - (2 * (event.clientY - top)) / height);
    this.#ray.setFromCamera(at, this.#host.camera);
    return at;
  }

  #hit(): { body: number; at: THREE.Vector3 } | null {
    const bodies = this.#host.bodies();
    const meshes = bodies.map((body) => {
      const found: THREE.Object3D[] = [];
      body.traverse((part) => (part as THREE.Mesh).isMesh && found.push(part));
      return found;
    });
    const [first] = this.#ray.intersectObjects(meshes.flat(), false);
    if (!first) return null;
    return { body: meshes.findIndex((own) => own.includes(first.object)), at: first.point.clone() };
  }

  /** The body whose middle is nearest to the pointer, if it is near. */
  #near(at: THREE.Vector2): { body: number; at: THREE.Vector3 } | null {
    const { width, height } = this.#host.canvas.getBoundingClientRect();
    let best: { body: number; at: THREE.Vector3 } | null = null;
    let least = NEAR;
    this.#host.bodies().forEach((body, n) => {
      const middle = new THREE.Box3().setFromObject(body).getCenter(new THREE.Vector3());
      const seen = middle.clone().project(this.#host.camera);
      const far = Math.hypot(((seen.x - at.x) * width) / 2, ((seen.y - at.y) * height) / 2);
      if (far < least) [least, best] = [far, { body: n, at: middle }];
    });
    return best;
  }
}

/** A dashed line from a point that is pushed to the pointer. */
export class Rope extends THREE.Group {
  readonly #line: THREE.Line;
  readonly #dot: THREE.Mesh;

  constructor(extent: number) {
    super();
    const color = "#D55E00";
    const size = { dashSize: 0.02 * extent, gapSize: 0.012 * extent };
    this.#line = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineDashedMaterial({ color, ...size, depthTest: false }));
    this.#dot = new THREE.Mesh(new THREE.SphereGeometry(0.014 * extent, 16, 12), new THREE.MeshBasicMaterial({ color, depthTest: false }));
    for (const part of [this.#line, this.#dot]) {
      part.renderOrder = 20;
      part.frustumCulled = false;
    }
    this.add(this.#line, this.#dot);
    this.visible = false;
  }

  stretch(from: THREE.Vector3, to: THREE.Vector3): void {
    this.#line.geometry.setFromPoints([from, to]);
    this.#line.computeLineDistances();
    this.#dot.position.copy(from);
  }
}
