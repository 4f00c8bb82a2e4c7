// Colors of curves on light and on dark paper: near those of Okabe and Ito, moved apart until each
// two differ also for color-blind people. test/palette.ts measures how much.

export const LIGHT = ["#1569AE", "#C54C00", "#01955F", "#B8578F", "#E07900", "#1E99EE", "#4D4D4D", "#6B55D6"];
export const DARK = ["#52A1E0", "#FF8749", "#3AE5AA", "#B48CAA", "#FFDB2C", "#B7D8FF", "#FFFFFF", "#887AFF"];
