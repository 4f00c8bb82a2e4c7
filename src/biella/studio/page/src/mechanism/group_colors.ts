// Colors of groups of forces, of Okabe and Ito's palette, for light and dark paper.

import type { Group } from "../protocol";

export const GROUP_COLORS: Record<Group, [string, string]> = {
  joint: ["#0072B2", "#5AB4F0"],
  element: ["#00795A", "#2ED3A2"],
  load: ["#D55E00", "#FF8A3D"],
  contact: ["#A8457F", "#F09CCB"],
};
