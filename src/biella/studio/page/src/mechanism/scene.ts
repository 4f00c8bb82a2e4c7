// A mechanism in three: bodies that take poses, a camera that orbits or looks at a plane, trails.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import type { Group, Mechanism, MeshFile, Point3 } from "../protocol";
import { Forces, type Shown } from "./forces";
import { Pusher, type Pushed, Rope } from "./push";
import { fillMesh, makeVisuals, readMesh } from "./visuals";
import { findTraced } from "./trail";
import { type Inks, makeBody, makeFoot, makeJoint, makeLink, placeLink } from "./shapes";

const TRAIL = 1200;
/** What legends need of the view: lengths in px, the direction of weight on the screen. */
export interface Look {
  pxPerNewton: number;
  pxPerNewtonMeter: number;
  /** Largest values at present. */
  force: number;
  torque: number;
  down: [number, number] | null;
}

export interface Scene {
  /** Place all bodies: 7 numbers each. */
  pose(values: ArrayLike<number>): void;
  follow(body: number | null): void;
  trails(on: boolean): void;
  clearTrails(): void;
  /** Values of the efforts at the time of the newest poses; null: none are known. */
  efforts(values: ArrayLike<number> | null): void;
  /** Numbers of the meshes that bodies have, and one of them that has come. */
  readonly meshes: number[];
  mesh(file: MeshFile): void;
  show(shown: Shown): void;
  /** Pixels of the upper and the lower edge that something else lies over. */
  inset(top: number, bottom: number): void;
  /** Let bodies be pushed; a force that is drawn at its point, in N. */
  pushing(on: boolean): void;
  pushed(body: number, point: Point3, drag: Point3): void;
  letGo(): void;
  fit(): void;
  dispose(): void;
}

interface Trail {
  line: THREE.Line;
  positions: THREE.BufferAttribute;
  count: number;
  point: THREE.Vector3;
}

export interface SceneEvents {
  look(look: Look): void;
  push(pushed: Pushed | null): void;
}

export function createScene(
  host: HTMLElement, mechanism: Mechanism, dark: boolean, colors: Record<Group, string>, events: SceneEvents,
): Scene {
  const renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true });
  renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
  host.append(renderer.domElement);
  const canvas = renderer.domElement;
  canvas.style.cssText = "display:block;width:100%;height:100%;outline-offset:-2px";
  canvas.tabIndex = 0;

  const extent = mechanism.extent > 0 ? mechanism.extent : 1;
  const up = new THREE.Vector3(...mechanism.up);
  const toward = mechanism.planar
    ? new THREE.Vector3(...mechanism.normal)
    : new THREE.Vector3(1, 0.35, 0).applyAxisAngle(new THREE.Vector3(0, 0, 1), -1.1).addScaledVector(up, 0.55).normalize();
  const camera = mechanism.planar
    ? new THREE.OrthographicCamera(-1, 1, 1, -1, -100 * extent, 100 * extent)
    : new THREE.PerspectiveCamera(32, 1, 0.01 * extent, 200 * extent);
  camera.up.copy(up);
  const controls = new OrbitControls(camera, canvas);
  controls.enableDamping = false;
  controls.enableRotate = !mechanism.planar;
  if (mechanism.planar) controls.mouseButtons.LEFT = THREE.MOUSE.PAN;
  if (mechanism.planar) controls.touches.ONE = THREE.TOUCH.PAN;
  controls.listenToKeyEvents(canvas);
  canvas.setAttribute("aria-label", `Mechanism ${mechanism.name}`);
  const pusher = new Pusher({ canvas, camera, bodies: () => bodies, pushed: (pushed) => events.push(pushed) });

  const scene = new THREE.Scene();
  // A planar mechanism is a drawing: hardly any shading.
  const sun = new THREE.DirectionalLight("#ffffff", mechanism.planar ? 0.5 : 1.7);
  sun.position.copy(toward).addScaledVector(up, 0.8);
  scene.add(new THREE.HemisphereLight("#ffffff", mechanism.planar ? "#ffffff" : "#b8bec8", mechanism.planar ? 2.6 : 1.9), sun);

  let world = new THREE.Group();
  let bodies: THREE.Group[] = [];
  let waiting: [number, THREE.Group][] = [];
  const meshes = new Map<number, THREE.Object3D>();
  let inset = { top: 0, bottom: 0 };
  const hasVisuals = [mechanism, ...mechanism.bodies].some((owner) => owner.visuals?.length);
  let links: { line: THREE.Line; ends: [number, Point3][]; index: number }[] = [];
  let trails: Trail[] = [];
  let grid: THREE.GridHelper | null = null;
  let hasTrails = false;
  let followed: number | null = null;
  let last: ArrayLike<number> = (mechanism.given ?? []).flat();
  let asked = 0;
  let touched = false;
  const forces = new Forces(mechanism, extent, dark, colors);
  let pulled: { body: number; point: Point3; drag: Point3 } | null = null;
  const rope = new Rope(extent);
  /** Where bodies have been. */
  const reach = new THREE.Box3();
  const fitted = new THREE.Box3();

  function build(isDark: boolean): void {
    world.remove(forces.meshes.group, rope);
    scene.remove(world);
    release(world);
    world = new THREE.Group();
    world.add(forces.meshes.group, rope);
    const inks: Inks = isDark
      ? { edge: "#0b0d10", joint: "#cfd6dd", jointFace: "#e8ecf0", soft: "#6d7681" }
      : { edge: "#20262d", joint: "#3a424b", jointFace: "#fbfcfd", soft: "#a7afb9" };
    const shapes = [...mechanism.bodies, { visuals: mechanism.visuals, color: inks.soft }].map(({ visuals, color }) =>
      visuals?.length ? makeVisuals(visuals, color) : null,
    );
    bodies = mechanism.bodies.map((body, n) => shapes[n]?.group ?? makeBody(body, mechanism, inks));
    for (const body of bodies) world.add(body);
    const ground = shapes[mechanism.bodies.length];
    if (ground) world.add(ground.group);
    waiting = shapes.flatMap((shape) => shape?.waiting ?? []);
    for (const [number, own] of waiting) if (meshes.has(number)) fillMesh(own, meshes.get(number)!);
    // Shapes show where joints are.
    for (const joint of hasVisuals ? [] : mechanism.joints) {
      const drawn = makeJoint(joint, extent, inks);
      (bodies[joint.body_i] ?? world).add(drawn);
      const isGrounded = joint.body_i < 0 || joint.body_j < 0;
      if (isGrounded && /revolute|hinge|spherical|ball/.test(joint.kind)) {
        const point = joint.body_i < 0 ? joint.p_i : joint.p_j;
        world.add(makeFoot(new THREE.Vector3(...point), up, extent, inks));
      }
    }
    links = mechanism.elements.flatMap((element, index) => {
      if (element.ends.length < 2) return [];
      const line = makeLink(element, inks);
      world.add(line);
      return [{ line, ends: element.ends, index }];
    });
    grid = new THREE.GridHelper(6 * extent, 24, isDark ? "#2b323a" : "#dfe3e8", isDark ? "#20262c" : "#eceff2");
    if (mechanism.planar) {
      grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), toward);
      grid.position.addScaledVector(toward, -0.5 * extent);
    } else {
      grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);
      sink();
    }
    world.add(grid);
    trails = mechanism.bodies.map((body, n) => {
      const geometry = new THREE.BufferGeometry();
      const positions = new THREE.BufferAttribute(new Float32Array(3 * TRAIL), 3);
      geometry.setAttribute("position", positions);
      geometry.setDrawRange(0, 0);
      const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: body.color, transparent: true, opacity: 0.7 }));
      line.frustumCulled = false;
      line.visible = hasTrails;
      world.add(line);
      return { line, positions, count: 0, point: new THREE.Vector3(...findTraced(mechanism, n)) };
    });
    scene.add(world);
    place(last, false);
  }

  function inWorld([body, point]: [number, Point3]): THREE.Vector3 {
    const at = new THREE.Vector3(...point);
    return bodies[body] ? at.applyQuaternion(bodies[body]!.quaternion).add(bodies[body]!.position) : at;
  }

  function place(values: ArrayLike<number>, isNew: boolean): void {
    last = values;
    const before = followed === null ? null : bodies[followed]?.position.clone();
    bodies.forEach((body, n) => {
      const [x, y, z, e0, e1, e2, e3] = Array.from({ length: 7 }, (_, k) => values[7 * n + k] ?? (k === 3 ? 1 : 0)) as [
        number, number, number, number, number, number, number,
      ];
      body.position.set(x, y, z);
      body.quaternion.set(e1, e2, e3, e0);
    });
    for (const { line, ends, index } of links) {
      placeLink(line, mechanism.elements[index]!, inWorld(ends[0]!), inWorld(ends[1]!), toward, extent);
    }
    if (grow() && isNew && !touched && !pulled && followed === null) fit();
    if (isNew) trails.forEach((trail, n) => extend(trail, inWorld([n, trail.point.toArray() as Point3])));
    if (!isNew) forces.draw(last, false); // those of new poses are on their way
    drawRope();
    if (before && followed !== null) {
      const moved = bodies[followed]!.position.clone().sub(before);
      controls.target.add(moved);
      camera.position.add(moved);
    }
    ask();
  }

  /** What a drag pulls at: a line from the point of the body to the pointer. */
  function drawRope(): void {
    rope.visible = pulled !== null;
    if (!pulled) return;
    const from = inWorld([pulled.body, pulled.point]);
    rope.stretch(from, from.clone().add(new THREE.Vector3(...pulled.drag)));
  }

  /** At the distance of what the camera looks at. */
  function metersPerPixel(): number {
    const height = host.clientHeight || 1;
    if (!(camera instanceof THREE.PerspectiveCamera)) return (camera.top - camera.bottom) / (height * camera.zoom);
    return (2 * Math.tan((camera.fov * Math.PI) / 360) * camera.position.distanceTo(controls.target)) / height;
  }

  function look(): void {
    const px = 1 / metersPerPixel();
    const weight = new THREE.Vector3(...(mechanism.gravity ?? [0, 0, 0]));
    weight.normalize().applyQuaternion(camera.quaternion.clone().invert());
    events.look({
      pxPerNewton: px * forces.scale("force"),
      pxPerNewtonMeter: px * forces.scale("torque"),
      force: forces.peak("force"),
      torque: forces.peak("torque"),
      down: weight.lengthSq() > 0 ? [weight.x, -weight.y] : null,
    });
  }

  function extend(trail: Trail, point: THREE.Vector3): void {
    const array = trail.positions.array as Float32Array;
    if (trail.count === TRAIL) {
      array.copyWithin(0, 3);
      trail.count -= 1;
    }
    trail.positions.setXYZ(trail.count, point.x, point.y, point.z);
    trail.count += 1;
    trail.line.geometry.setDrawRange(0, trail.count);
    trail.positions.needsUpdate = true;
  }

  /** Add where all bodies are to what has been seen of the motion; true if the view is too small. */
  function grow(): boolean {
    mechanism.bodies.forEach((body, n) => {
      if (body.visuals?.length) reach.union(new THREE.Box3().setFromObject(bodies[n]!));
      else for (const shape of body.shapes) {
        for (const point of shape.points ?? []) {
          const at = inWorld([n, point]);
          const around = shape.radius ?? 0.07 * extent;
          reach.union(new THREE.Box3(at.clone().subScalar(around), at.addScalar(around)));
        }
      }
    });
    if (!mechanism.planar) sink();
    return !fitted.containsBox(reach);
  }

  /** Keep the floor below everything that has been seen: its lines would cross what hangs lower. */
  function sink(): void {
    if (!grid) return;
    const half = reach.isEmpty() ? new THREE.Vector3() : reach.getSize(new THREE.Vector3()).multiplyScalar(0.5);
    const middle = reach.isEmpty() ? half : reach.getCenter(new THREE.Vector3());
    const lowest = middle.dot(up) - half.dot(new THREE.Vector3(Math.abs(up.x), Math.abs(up.y), Math.abs(up.z)));
    grid.position.copy(up).multiplyScalar(Math.min(-0.62 * extent, lowest - 0.05 * extent));
  }

  function fit(): void {
    // A margin, so that a body that sets out does not move the view at each step.
    fitted.copy(reach).expandByScalar(0.12 * extent);
    const box = reach.clone();
    for (const { point } of mechanism.ground) box.expandByPoint(new THREE.Vector3(...point));
    if (box.isEmpty()) box.setFromCenterAndSize(new THREE.Vector3(), new THREE.Vector3(extent, extent, extent));
    const middle = box.getCenter(new THREE.Vector3());
    const size = box.getSize(new THREE.Vector3());
    // What lies over the upper and the lower edge of the view leaves less of its height.
    const height = host.clientHeight || 1;
    const part = Math.max(height - inset.top - inset.bottom, 0.4 * height) / height;
    const aspect = (host.clientWidth || 1) / (part * height);
    let radius = Math.max(0.5 * size.length(), 0.3 * extent);
    if (mechanism.planar) {
      // Seen from the front: half of what fits in the smaller direction.
      const right = up.clone().cross(toward);
      const wide = Math.abs(size.dot(right.set(Math.abs(right.x), Math.abs(right.y), Math.abs(right.z))));
      const tall = Math.abs(size.dot(up));
      radius = 0.58 * Math.max(tall / part, wide / (aspect * part), 0.2 * extent);
      const whole = (host.clientWidth || 1) / height; // one meter at zoom 1 is half of the smaller side
      if (whole < 1) radius *= whole;
    }
    if (camera instanceof THREE.PerspectiveCamera) {
      const half = Math.tan(((camera.fov / 2) * Math.PI) / 180);
      camera.position.copy(middle).addScaledVector(toward, (1.15 * radius) / (half * part * Math.min(1, aspect)));
    } else {
      camera.zoom = 1 / radius;
      camera.position.copy(middle).addScaledVector(toward, 10 * extent);
    }
    camera.lookAt(middle);
    camera.updateMatrixWorld();
    controls.target.copy(middle);
    resize();
    // To the middle of what is not covered.
    const lift = new THREE.Vector3(0, 0.5 * (inset.top - inset.bottom) * metersPerPixel(), 0).applyQuaternion(camera.quaternion);
    camera.position.add(lift);
    controls.target.add(lift);
    controls.update();
    ask();
  }

  function resize(): void {
    const [width, height] = [host.clientWidth, host.clientHeight];
    if (!width || !height) return;
    renderer.setSize(width, height, false);
    const aspect = width / height;
    if (camera instanceof THREE.PerspectiveCamera) camera.aspect = aspect;
    else {
      // One meter around the middle, in the smaller direction, at zoom 1.
      const [w, h] = aspect > 1 ? [aspect, 1] : [1, 1 / aspect];
      [camera.left, camera.right, camera.top, camera.bottom] = [-w, w, h, -h];
    }
    camera.updateProjectionMatrix();
    ask();
  }

  function ask(): void {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      renderer.render(scene, camera);
      look();
    });
  }

  /** Zoom by a factor, as the wheel does. */
  function zoom(factor: number): void {
    touched = true;
    if (camera instanceof THREE.PerspectiveCamera) {
      camera.position.sub(controls.target).divideScalar(factor).add(controls.target);
    } else camera.zoom *= factor;
    camera.updateProjectionMatrix();
    controls.update();
    ask();
  }

  canvas.addEventListener("keydown", (event) => {
    const actions: Record<string, () => void> = {
      "+": () => zoom(1.2),
      "=": () => zoom(1.2),
      "-": () => zoom(1 / 1.2),
      "0": () => ((touched = false), fit()),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });

  controls.addEventListener("change", ask);
  controls.addEventListener("start", () => (touched = true));
  const observer = new ResizeObserver(() => (touched ? resize() : fit()));
  observer.observe(host);
  build(dark);
  fit();

  return {
    pose: (values) => place(values, true),
    follow(body) {
      followed = body;
      if (body !== null && bodies[body]) {
        const moved = bodies[body].position.clone().sub(controls.target);
        controls.target.add(moved);
        camera.position.add(moved);
        controls.update();
      }
      ask();
    },
    trails(on) {
      hasTrails = on;
      for (const trail of trails) trail.line.visible = on;
      ask();
    },
    clearTrails() {
      for (const trail of trails) trail.line.geometry.setDrawRange(0, (trail.count = 0));
      ask();
    },
    meshes: [...new Set(waiting.map(([number]) => number))],
    mesh(file) {
      const read = readMesh(file);
      meshes.set(file.number, read);
      for (const [number, own] of waiting) if (number === file.number) fillMesh(own, read);
      place(last, false);
      if (!touched) fit();
    },
    efforts(now) {
      forces.take(now);
      forces.draw(last, true);
      ask();
    },
    show(now) {
      forces.show(now);
      forces.draw(last, true);
      ask();
    },
    inset(top, bottom) {
      if (top === inset.top && bottom === inset.bottom) return;
      inset = { top, bottom };
      if (!touched) fit();
    },
    pushing(on) {
      pusher.isOn = on;
      canvas.style.cursor = on ? "crosshair" : "";
      if (!on) pusher.stop();
    },
    pushed(body, point, drag) {
      pulled = { body, point, drag };
      drawRope();
      ask();
    },
    letGo() {
      pulled = null;
      drawRope();
      ask();
    },
    fit() {
      touched = false;
      fit();
    },
    dispose() {
      cancelAnimationFrame(asked);
      observer.disconnect();
      controls.dispose();
      pusher.dispose();
      forces.meshes.dispose();
      release(world);
      renderer.dispose();
      canvas.remove();
    },
  };
}

function release(object: THREE.Object3D): void {
  object.traverse((part) => {
    const { geometry, material } = part as Partial<THREE.Mesh>;
    geometry?.dispose();
    for (const one of Array.isArray(material) ? material : material ? [material] : []) one.dispose();
  });
}
