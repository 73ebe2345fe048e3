// How long drawing takes, measured where it happens: `window.yardmasterFrames` in the page.

const KEPT = 2000;

/** Times of the frames drawn so far, and a way to draw more of them on purpose. */
class FrameTimes {
  constructor() {
    /** @type {number[]} milliseconds, the latest last */
    this.frames = [];
    /** @type {number | null} from the arrival of the data to the first picture */
    this.first_paint_ms = null;
    /** @type {any} */
    this.chart = null;
    /** @type {number | undefined} when the data of the chart drawn last came */
    this.arrived_ms = undefined;
  }

  /**
   * @param {number} took_ms
   * @param {number} [arrived_ms] when the data of this chart came
   */
  note(took_ms, arrived_ms) {
    this.frames.push(took_ms);
    if (this.frames.length > KEPT) this.frames.shift();
    if (arrived_ms !== undefined && this.arrived_ms !== arrived_ms) {
      this.arrived_ms = arrived_ms;
      this.first_paint_ms = performance.now() - arrived_ms;
    }
  }

  /** @param {any} chart */
  offer(chart) {
    this.chart = chart;
  }

  /** @param {any} chart */
  withdraw(chart) {
    if (this.chart === chart) this.chart = null;
  }

  /**
   * Draw frames that zoom in, pan across and zoom out, each read back so that nothing is put off.
   * @param {number} frames
   * @returns {number[]} milliseconds of each
   */
  measure(frames) {
    const { chart } = this;
    const took = [];
    for (let frame = 0; frame < frames; frame += 1) {
      const part = frame / frames;
      if (part < 0.33) chart.window.zoom(0.95);
      else if (part < 0.66) chart.window.pan(frame % 2 ? 0.07 : -0.05);
      else chart.window.zoom(1.06);
      const begun = performance.now();
      chart.draw();
      chart.context.getImageData(0, 0, 1, 1);
      took.push(performance.now() - begun);
    }
    chart.window.reset();
    return took;
  }
}

export const frameTimes = new FrameTimes();
/** @type {any} */ (globalThis).yardmasterFrames = frameTimes;
