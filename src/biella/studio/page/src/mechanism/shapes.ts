// Solids of bodies, joints and elements, in axes of their bodies. Loaded with three, when needed.

import * as THREE from "three";
import type { Body, BodyShape, Element, Joint, Mechanism, Point3 } from "../protocol";

const THICK = 0.026; // of the extent: half the width of a rod
const EDGE_ANGLE = 35;

export interface Inks {
  edge: string;
  joint: string;
  jointFace: string;
  soft: string;
}

function vector(point: Point3): THREE.Vector3 {
  return new THREE.Vector3(...point);
}

function solid(geometry: THREE.BufferGeometry, color: string, inks: Inks, edges = true): THREE.Object3D {
  const mesh = new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color }));
  if (edges) {
    const lines = new THREE.EdgesGeometry(geometry, EDGE_ANGLE);
    mesh.add(new THREE.LineSegments(lines, new THREE.LineBasicMaterial({ color: inks.edge, transparent: true, opacity: 0.45 })));
  }
  return mesh;
}

/** Turn an object whose axis is y so that it points along `axis`. */
function align<T extends THREE.Object3D>(object: T, axis: THREE.Vector3): T {
  const unit = axis.lengthSq() > 0 ? axis.clone().normalize() : new THREE.Vector3(0, 0, 1);
  object.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), unit);
  return object;
}

function bar(a: THREE.Vector3, b: THREE.Vector3, radius: number, color: string, inks: Inks): THREE.Object3D {
  const along = b.clone().sub(a);
  const object = align(solid(new THREE.CapsuleGeometry(radius, along.length(), 6, 20), color, inks, false), along);
  object.position.copy(a).addScaledVector(along, 0.5);
  return object;
}

/** A rod of a planar mechanism: a strip with round ends. */
function strip(a: THREE.Vector3, b: THREE.Vector3, radius: number, color: string, inks: Inks): THREE.Object3D {
  const along = b.clone().sub(a);
  const turn = Math.atan2(along.y, along.x);
  const shape = new THREE.Shape();
  shape.absarc(0, 0, radius, Math.PI / 2, 1.5 * Math.PI, false);
  shape.absarc(along.length(), 0, radius, -Math.PI / 2, Math.PI / 2, false);
  shape.closePath();
  const geometry = new THREE.ExtrudeGeometry(shape, { depth: radius, bevelEnabled: false, curveSegments: 20 });
  geometry.translate(0, 0, -0.5 * radius);
  const object = solid(geometry, color, inks);
  object.position.copy(a);
  object.rotation.z = turn;
  return object;
}

function disc(shape: BodyShape, color: string, extent: number, inks: Inks): THREE.Object3D {
  const radius = shape.radius ?? 0.1 * extent;
  const thick = Math.min(0.05 * extent, 0.5 * radius);
  const group = new THREE.Group();
  group.add(solid(new THREE.CylinderGeometry(radius, radius, thick, 64), color, inks));
  // A spoke shows how far it has turned.
  const spoke = new THREE.BoxGeometry(0.86 * radius, thick * 1.06, Math.max(0.07 * radius, 0.004 * extent));
  spoke.translate(0.5 * radius, 0, 0);
  group.add(solid(spoke, inks.jointFace, inks, false));
  align(group, vector(shape.axis ?? [0, 0, 1]));
  group.position.copy(vector(shape.points?.[0] ?? [0, 0, 0]));
  return group;
}

function block(shape: BodyShape, color: string, extent: number, inks: Inks): THREE.Object3D {
  const size = extent * (shape.small ? 0.09 : 0.14);
  const geometry = shape.round
    ? new THREE.CylinderGeometry(0.3 * size, 0.3 * size, size, 32)
    : new THREE.BoxGeometry(0.6 * size, size, 0.6 * size);
  const object = align(solid(geometry, color, inks), vector(shape.axis ?? [1, 0, 0]));
  object.position.copy(vector(shape.points?.[0] ?? [0, 0, 0]));
  return object;
}

function plate(shape: BodyShape, color: string, extent: number, planar: boolean, inks: Inks): THREE.Object3D {
  const points = (shape.points ?? []).map(vector);
  const middle = points.reduce((sum, p) => sum.add(p), new THREE.Vector3()).divideScalar(points.length || 1);
  const radius = THICK * extent;
  const group = new THREE.Group();
  if (planar && points.length > 2) {
    const around = [...points].sort((a, b) => angle(a, middle) - angle(b, middle));
    const outline = new THREE.Shape(around.map((p) => new THREE.Vector2(p.x, p.y)));
    const sheet = new THREE.ExtrudeGeometry(outline, {
      depth: 0.6 * radius, bevelEnabled: true, bevelSize: radius, bevelThickness: 0.3 * radius, bevelSegments: 3,
    }); // prettier-ignore
    sheet.translate(0, 0, middle.z - 0.3 * radius);
    group.add(solid(sheet, color, inks));
  } else for (const point of points) group.add(bar(middle, point, 0.7 * radius, color, inks));
  return group;
}

function angle(p: THREE.Vector3, center: THREE.Vector3): number {
  return Math.atan2(p.y - center.y, p.x - center.x);
}

export function makeBody(body: Body, mechanism: Mechanism, inks: Inks): THREE.Group {
  const { extent, planar } = mechanism;
  const group = new THREE.Group();
  for (const shape of body.shapes) {
    const [a, b] = shape.points ?? [];
    if (shape.kind === "rod" && a && b) {
      const make = planar ? strip : bar;
      group.add(make(vector(a), vector(b), (planar ? 0.85 : 1) * THICK * extent, body.color, inks));
    }
    else if (shape.kind === "disc") group.add(disc(shape, body.color, extent, inks));
    else if (shape.kind === "block") group.add(block(shape, body.color, extent, inks));
    else if (shape.kind === "plate") group.add(plate(shape, body.color, extent, planar, inks));
    else {
      const ball = solid(new THREE.SphereGeometry(2 * THICK * extent, 32, 20), body.color, inks, false);
      ball.position.copy(vector(a ?? [0, 0, 0]));
      group.add(ball);
    }
  }
  return group;
}

/** What is drawn of a joint on its first body: a pin, a guide, a ball. */
export function makeJoint(joint: Joint, extent: number, inks: Inks): THREE.Object3D {
  const radius = 0.62 * THICK * extent;
  const axis = vector(joint.axis_i);
  const group = new THREE.Group();
  group.position.copy(vector(joint.p_i));
  if (/prismatic|slide|cylindrical|translat/.test(joint.kind) && joint.body_i < 0) {
    // Long, because how far the body slides is not known.
    const rail = new THREE.CylinderGeometry(0.22 * radius, 0.22 * radius, 8 * extent, 12);
    group.add(align(solid(rail, inks.soft, inks, false), axis));
  } else if (/revolute|hinge|universal|cylindrical/.test(joint.kind)) {
    const pin = new THREE.CylinderGeometry(radius, radius, 3.4 * THICK * extent, 28);
    group.add(align(solid(pin, inks.jointFace, inks), axis));
  } else if (!/prismatic|slide|fixed|weld|translat/.test(joint.kind)) {
    group.add(solid(new THREE.SphereGeometry(1.15 * radius, 24, 16), inks.jointFace, inks, false));
  }
  return group;
}

/** A pin of the ground stands on a foot. */
export function makeFoot(point: THREE.Vector3, up: THREE.Vector3, extent: number, inks: Inks): THREE.Object3D {
  const size = 2.6 * THICK * extent;
  const group = new THREE.Group();
  const cone = new THREE.ConeGeometry(0.8 * size, 1.3 * size, 4, 1);
  cone.rotateY(Math.PI / 4);
  cone.translate(0, -0.75 * size, 0);
  const base = new THREE.BoxGeometry(2.4 * size, 0.16 * size, 1.6 * size);
  base.translate(0, -1.45 * size, 0);
  group.add(solid(cone, inks.soft, inks, true), solid(base, inks.soft, inks, false));
  align(group, up);
  group.position.copy(point);
  return group;
}

const COILS = 9;

/** The line of an element between two points of the world: a zigzag for springs. */
export function makeLink(element: Element, inks: Inks): THREE.Line {
  const count = isSpring(element) ? 2 * COILS + 4 : 2;
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * count), 3));
  const color = element.is_load ? "#D55E00" : inks.joint;
  const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color, transparent: true, opacity: 0.85 }));
  line.frustumCulled = false;
  return line;
}

function isSpring(element: Element): boolean {
  return /spring|bushing|bush|elastic/.test(element.kind);
}

export function placeLink(line: THREE.Line, element: Element, a: THREE.Vector3, b: THREE.Vector3, toward: THREE.Vector3, extent: number): void {
  const position = line.geometry.getAttribute("position") as THREE.BufferAttribute;
  if (!isSpring(element)) {
    position.setXYZ(0, a.x, a.y, a.z);
    position.setXYZ(1, b.x, b.y, b.z);
  } else {
    const along = b.clone().sub(a);
    const side = along.clone().cross(toward);
    if (side.lengthSq() < 1e-12 * extent * extent) side.set(-along.y, along.x, 0);
    side.setLength(0.028 * extent);
    const point = new THREE.Vector3();
    const last = position.count - 1;
    for (let k = 0; k <= last; k += 1) {
      const inner = Math.min(Math.max((k - 1) / (last - 2), 0), 1);
      const share = k === 0 ? 0 : k === last ? 1 : 0.15 + 0.7 * inner;
      point.copy(a).addScaledVector(along, share);
      if (k > 1 && k < last - 1) point.addScaledVector(side, k % 2 ? 1 : -1);
      position.setXYZ(k, point.x, point.y, point.z);
    }
  }
  position.needsUpdate = true;
}
