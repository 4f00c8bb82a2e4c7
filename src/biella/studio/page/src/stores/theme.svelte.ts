// Light and dark, and the colors of curves in both.

import { DARK, LIGHT } from "./palette";
import { keep, recall } from "./storage";

export type ThemeChoice = "auto" | "light" | "dark";
const KEY = "biella-studio-theme";

// The colors that pictures of diagrams use, on dark paper.
const ON_DARK: Record<string, string> = {
  "#0072B2": "#4FA9E2",
  "#D55E00": "#F5813A",
  "#009E73": "#2CC596",
  "#CC79A7": "#E39CC5",
  "#E69F00": "#F0B541",
  "#56B4E9": "#8ACFF7",
  "#000000": "#E8EBEE",
  "#333333": "#C3CAD1",
  "#7F7F7F": "#9DA5AE",
};

class Theme {
  choice = $state<ThemeChoice>((recall(KEY) as ThemeChoice | null) ?? "auto");
  #system = $state(matchMedia("(prefers-color-scheme: dark)").matches);
  readonly dark = $derived(this.choice === "auto" ? this.#system : this.choice === "dark");

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.#system = event.matches;
    });
  }

  /** Follow what surrounds the page, which may differ from the system. */
  follow(dark: boolean): void {
    this.#system = dark;
  }

  toggle(): void {
    this.choice = this.dark ? "light" : "dark";
    keep(KEY, this.choice);
  }

  /** The color of the n-th curve. */
  curve(n: number): string {
    const palette = this.dark ? DARK : LIGHT;
    return palette[n % palette.length] ?? "#888888";
  }

  /** A color of a picture of a diagram, readable on the paper of today. */
  ink(color: string): string {
    return this.dark ? (ON_DARK[color.toUpperCase()] ?? color) : color;
  }
}

export const theme = new Theme();
