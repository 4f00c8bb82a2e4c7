// A mechanism in three: bodies that take poses, a camera that orbits or looks at a plane, trails.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import type { Mechanism, Point3 } from "../protocol";
import { type Inks, makeBody, makeFoot, makeJoint, makeLink, placeLink } from "./shapes";

const TRAIL = 1200;

export interface Scene {
  /** Place all bodies: 7 numbers each. */
  pose(values: ArrayLike<number>): void;
  follow(body: number | null): void;
  trails(on: boolean): void;
  clearTrails(): void;
  fit(): void;
  paint(dark: boolean): void;
  dispose(): void;
}

interface Trail {
  line: THREE.Line;
  positions: THREE.BufferAttribute;
  count: number;
  point: THREE.Vector3;
}

export function createScene(host: HTMLElement, mechanism: Mechanism, dark: boolean): Scene {
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

  const scene = new THREE.Scene();
  // A planar mechanism is a drawing: hardly any shading.
  const sun = new THREE.DirectionalLight("#ffffff", mechanism.planar ? 0.5 : 1.7);
  sun.position.copy(toward).addScaledVector(up, 0.8);
  scene.add(new THREE.HemisphereLight("#ffffff", mechanism.planar ? "#ffffff" : "#b8bec8", mechanism.planar ? 2.6 : 1.9), sun);

  let world = new THREE.Group();
  let bodies: THREE.Group[] = [];
  let links: { line: THREE.Line; ends: [number, Point3][]; index: number }[] = [];
  let trails: Trail[] = [];
  let hasTrails = false;
  let followed: number | null = null;
  let last: ArrayLike<number> = (mechanism.given ?? []).flat();
  let asked = 0;
  let touched = false;
  /** Where bodies have been. */
  const reach = new THREE.Box3();
  const fitted = new THREE.Box3();

  function build(isDark: boolean): void {
    scene.remove(world);
    release(world);
    world = new THREE.Group();
    const inks: Inks = isDark
      ? { edge: "#0b0d10", joint: "#cfd6dd", jointFace: "#e8ecf0", soft: "#6d7681" }
      : { edge: "#20262d", joint: "#3a424b", jointFace: "#fbfcfd", soft: "#a7afb9" };
    bodies = mechanism.bodies.map((body) => makeBody(body, mechanism, inks));
    for (const body of bodies) world.add(body);
    for (const joint of mechanism.joints) {
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
    const grid = new THREE.GridHelper(6 * extent, 24, isDark ? "#2b323a" : "#dfe3e8", isDark ? "#20262c" : "#eceff2");
    if (mechanism.planar) {
      grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), toward);
      grid.position.addScaledVector(toward, -0.5 * extent);
    } else {
      grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);
      grid.position.addScaledVector(up, -0.62 * extent);
    }
    world.add(grid);
    trails = mechanism.bodies.map((body) => {
      const geometry = new THREE.BufferGeometry();
      const positions = new THREE.BufferAttribute(new Float32Array(3 * TRAIL), 3);
      geometry.setAttribute("position", positions);
      geometry.setDrawRange(0, 0);
      const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: body.color, transparent: true, opacity: 0.7 }));
      line.frustumCulled = false;
      line.visible = hasTrails;
      world.add(line);
      return { line, positions, count: 0, point: new THREE.Vector3(...farthest(body.com, body.markers)) };
    });
    scene.add(world);
    place(last, false);
  }

  /** The point of a body whose path says most: the marker farthest from the others' middle. */
  function farthest(com: Point3 = [0, 0, 0], markers: { point: Point3 }[] = []): Point3 {
    if (markers.length < 2) return com;
    const far = (p: Point3) => Math.hypot(...p.map((x, k) => x - com[k]!));
    return markers.map((m) => m.point).reduce((best, p) => (far(p) > far(best) ? p : best));
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
    if (grow() && isNew && !touched && followed === null) fit();
    if (isNew) trails.forEach((trail, n) => extend(trail, inWorld([n, trail.point.toArray() as Point3])));
    if (before && followed !== null) {
      const moved = bodies[followed]!.position.clone().sub(before);
      controls.target.add(moved);
      camera.position.add(moved);
    }
    ask();
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
      for (const shape of body.shapes) {
        for (const point of shape.points ?? []) {
          const at = inWorld([n, point]);
          const around = shape.radius ?? 0.07 * extent;
          reach.union(new THREE.Box3(at.clone().subScalar(around), at.addScalar(around)));
        }
      }
    });
    return !fitted.containsBox(reach);
  }

  function fit(): void {
    // A margin, so that a body that sets out does not move the view at each step.
    fitted.copy(reach).expandByScalar(0.12 * extent);
    const box = reach.clone();
    for (const { point } of mechanism.ground) box.expandByPoint(new THREE.Vector3(...point));
    if (box.isEmpty()) box.setFromCenterAndSize(new THREE.Vector3(), new THREE.Vector3(extent, extent, extent));
    const middle = box.getCenter(new THREE.Vector3());
    const size = box.getSize(new THREE.Vector3());
    const aspect = (host.clientWidth || 1) / (host.clientHeight || 1);
    let radius = Math.max(0.5 * size.length(), 0.3 * extent);
    if (mechanism.planar) {
      // Seen from the front: half of what fits in the smaller direction.
      const right = up.clone().cross(toward);
      const wide = Math.abs(size.dot(right.set(Math.abs(right.x), Math.abs(right.y), Math.abs(right.z))));
      const tall = Math.abs(size.dot(up));
      radius = 0.58 * Math.max(tall * Math.min(aspect, 1), wide / Math.max(aspect, 1), 0.2 * extent);
    }
    controls.target.copy(middle);
    if (camera instanceof THREE.PerspectiveCamera) {
      const half = Math.tan(((camera.fov / 2) * Math.PI) / 180);
      camera.position.copy(middle).addScaledVector(toward, (1.15 * radius) / (half * Math.min(1, aspect)));
    } else {
      camera.zoom = 1 / radius;
      camera.position.copy(middle).addScaledVector(toward, 10 * extent);
    }
    camera.lookAt(middle);
    controls.update();
    resize();
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
    });
  }

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
    fit() {
      touched = false;
      fit();
    },
    paint: build,
    dispose() {
      cancelAnimationFrame(asked);
      observer.disconnect();
      controls.dispose();
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
