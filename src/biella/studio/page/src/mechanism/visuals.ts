// Shapes of bodies from their description: boxes, cylinders, spheres, and meshes, whose files come
// one after another when the scene is there.

import * as THREE from "three";
import { ColladaLoader } from "three/addons/loaders/ColladaLoader.js";
import { OBJLoader } from "three/addons/loaders/OBJLoader.js";
import { STLLoader } from "three/addons/loaders/STLLoader.js";
import type { MeshFile, Visual } from "../protocol";

const PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
const STL = 1;
const OBJ = 2;

/** Read a file of a shape; of materials only colors are taken, since their pictures are other files. */
export function readMesh({ format, content }: MeshFile): THREE.Object3D {
  if (format === STL) {
    const geometry = new STLLoader().parse(content);
    geometry.computeVertexNormals(); // those in the file are often zero
    return new THREE.Mesh(geometry);
  }
  const text = new TextDecoder().decode(content);
  if (format === OBJ) return new OBJLoader().parse(text);
  const manager = new THREE.LoadingManager();
  manager.setURLModifier(() => PIXEL);
  // As in other programs that read URDF, the axis that points up in the file is not turned.
  const read = new ColladaLoader(manager).parse(text.replace(/<up_axis>[^<]*<\/up_axis>/, ""), "");
  if (!read) throw new Error("the file is no Collada");
  return read.scene;
}

function makeSolid(visual: Visual): THREE.BufferGeometry {
  const [a = 1, b = a, c = a] = visual.size;
  if (visual.kind === "box") return new THREE.BoxGeometry(a, b, c);
  if (visual.kind === "sphere") return new THREE.SphereGeometry(a, 32, 20);
  return new THREE.CylinderGeometry(a, a, b, 40).rotateX(Math.PI / 2); // its axis is z in the file
}

/** Shapes as one object, and the meshes in it that wait for their files, by number. */
export function makeVisuals(visuals: readonly Visual[], color: string): { group: THREE.Group; waiting: [number, THREE.Group][] } {
  const group = new THREE.Group();
  const waiting: [number, THREE.Group][] = [];
  for (const visual of visuals) {
    const own = new THREE.Group();
    own.position.set(...visual.position);
    const [w = 1, x = 0, y = 0, z = 0] = visual.rotation;
    own.quaternion.set(x, y, z, w);
    group.add(own);
    if (visual.kind === "mesh") {
      const [a = 1, b = 1, c = 1] = visual.size;
      own.scale.set(a, b, c);
      own.userData.visual = visual;
      own.userData.color = color;
      if (visual.mesh !== undefined) waiting.push([visual.mesh, own]);
    } else own.add(new THREE.Mesh(makeSolid(visual), makeMaterial(visual, color)));
  }
  return { group, waiting };
}

function makeMaterial(visual: Visual, color: string): THREE.Material {
  const opacity = visual.opacity ?? 1;
  return new THREE.MeshLambertMaterial({ color: visual.color ?? color, opacity, transparent: opacity < 1 });
}

/** Put a mesh that was read in its place, in the color of its shape, its own, or that of the body. */
export function fillMesh(place: THREE.Group, read: THREE.Object3D): void {
  const visual = place.userData.visual as Visual;
  const copy = read.clone(true);
  copy.traverse((part) => {
    const mesh = part as THREE.Mesh;
    if (!mesh.isMesh) return;
    const own = (mesh.material as THREE.MeshPhongMaterial | undefined)?.color;
    const isPlain = !own || own.getHex() === 0xffffff;
    mesh.geometry = mesh.geometry.clone();
    mesh.material = makeMaterial(visual, isPlain ? (place.userData.color as string) : `#${own.getHexString()}`);
    if (!mesh.geometry.getAttribute("normal")) mesh.geometry.computeVertexNormals();
  });
  place.add(copy);
}
