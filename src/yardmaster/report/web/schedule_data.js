// A schedule as the server sends it: one header and many columns (see dashboard/schedule_blob.py).

const MAGIC = "YMSCHED1";
const TYPES = {
  f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, i16: Int16Array, u8: Uint8Array,
};

/**
 * A schedule: `about` is the header, `column` the columns by name, and what drawing needs besides.
 * @typedef {{
 *   about: any,
 *   column: Object<string, any>,
 *   barStart: Float64Array, barEnd: Float64Array, barJob: Uint32Array,
 *   gpuNode: Uint32Array, nodeFirstGpu: Uint32Array,
 * }} ScheduleData
 */

/**
 * Read the server's bytes.
 * @param {ArrayBuffer} buffer
 * @returns {ScheduleData}
 */
export function decode(buffer) {
  const head = new TextDecoder().decode(new Uint8Array(buffer, 0, 8));
  if (head !== MAGIC) throw new Error("The server sent something that is not a schedule.");
  const length = new DataView(buffer).getUint32(8, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 12, length)));
  /** @type {Object<string, any>} */
  const column = {};
  for (const [name, place] of Object.entries(about.columns)) {
    const Kind = TYPES[/** @type {keyof typeof TYPES} */ (place.type)];
    column[name] = new Kind(buffer, 12 + length + place.offset, place.length);
  }
  return { about, column, ...bars(column), ...places(column) };
}

/**
 * Times and jobs of bars, side by side with them: drawing reads nothing else.
 * @param {Object<string, any>} column
 */
function bars(column) {
  const segments = column.bar_segment;
  const barStart = new Float64Array(segments.length);
  const barEnd = new Float64Array(segments.length);
  const barJob = new Uint32Array(segments.length);
  for (let bar = 0; bar < segments.length; bar += 1) {
    const segment = segments[bar];
    barStart[bar] = column.segment_start[segment];
    barEnd[bar] = column.segment_end[segment];
    barJob[bar] = column.segment_job[segment];
  }
  return { barStart, barEnd, barJob };
}

/** @param {Object<string, any>} column */
function places(column) {
  const nodes = column.node_gpus.length;
  const nodeFirstGpu = new Uint32Array(nodes + 1);
  for (let node = 0; node < nodes; node += 1) nodeFirstGpu[node + 1] = nodeFirstGpu[node] + column.node_gpus[node];
  const gpuNode = new Uint32Array(nodeFirstGpu[nodes]);
  for (let node = 0; node < nodes; node += 1) gpuNode.fill(node, nodeFirstGpu[node], nodeFirstGpu[node + 1]);
  return { nodeFirstGpu, gpuNode };
}

/**
 * @param {ScheduleData} data @param {number} row
 * @returns {string} a job's id
 */
export function jobId({ column }, row) {
  return new TextDecoder().decode(column.id_text.subarray(column.id_offset[row], column.id_offset[row + 1]));
}

/**
 * The row of a job: by its id, else the first whose id begins so, else −1.
 * @param {ScheduleData} data @param {string} text
 */
export function findJob({ column }, text) {
  const wanted = new TextEncoder().encode(text.trim());
  if (!wanted.length) return -1;
  let near = -1;
  for (let row = 0; row + 1 < column.id_offset.length; row += 1) {
    const begin = column.id_offset[row];
    const length = column.id_offset[row + 1] - begin;
    if (length < wanted.length || (near >= 0 && length !== wanted.length)) continue;
    let same = 0;
    while (same < wanted.length && column.id_text[begin + same] === wanted[same]) same += 1;
    if (same === wanted.length) {
      if (length === wanted.length) return row;
      if (near < 0) near = row;
    }
  }
  return near;
}

/**
 * The first index in [from, to) whose value is larger than `wanted`; `to` if none is.
 * @param {Float64Array} values ascending between from and to
 * @param {number} wanted @param {number} from @param {number} to
 */
export function firstAbove(values, wanted, from, to) {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The bar at a time on a GPU, −1 if it is idle then. `share` says where between its upper and its
 * lower edge, for GPUs with several tracks.
 * @param {ScheduleData} data @param {number} gpu @param {number} time_s @param {number} [share]
 */
export function barAt(data, gpu, time_s, share = 0) {
  const { column } = data;
  const lanes = column.gpu_lanes[gpu];
  const lane = Math.min(Math.floor(share * lanes), lanes - 1);
  const track = firstTrack(data, gpu);
  const bar = barOn(data, track + lane, time_s);
  if (bar >= 0 || lane === 0) return bar;
  const first = barOn(data, track, time_s);
  return first >= 0 && isWhole(data, first) ? first : -1;
}

/** @param {ScheduleData} data @param {number} track @param {number} time_s */
function barOn({ barStart, barEnd, column }, track, time_s) {
  const past = column.track_bar[track + 1];
  const bar = firstAbove(barEnd, time_s, column.track_bar[track], past);
  return bar < past && barStart[bar] <= time_s ? bar : -1;
}

/**
 * Whether a bar's job has all of the GPU and not a share of it.
 * @param {ScheduleData} data @param {number} bar
 */
export function isWhole({ column }, bar) {
  return column.segment_share[column.bar_segment[bar]] >= 1000;
}

/**
 * @param {ScheduleData} data @param {number} gpu
 */
export function firstTrack({ column }, gpu) {
  let low = 0;
  let high = column.track_gpu.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column.track_gpu[middle] >= gpu) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * All bars of a job.
 * @param {ScheduleData} data @param {number} row
 */
export function barsOf(data, row) {
  const found = [];
  for (let bar = 0; bar < data.barJob.length; bar += 1) if (data.barJob[bar] === row) found.push(bar);
  return found;
}

/**
 * The track of a bar.
 * @param {ScheduleData} data @param {number} bar
 */
export function trackOf({ column }, bar) {
  let low = 0;
  let high = column.track_gpu.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (column.track_bar[middle] <= bar) low = middle;
    else high = middle - 1;
  }
  return low;
}
