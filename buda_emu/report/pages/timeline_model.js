'use strict';
// A timeline's slices, lanes and arrows as they were recorded; timeline_rows.js says where they stand.
const TIMELINE = {AXIS: 26, LANE: 18, HEAD: 22, COUNTER: 44, MEMORY: 150, GAP: 6};
const timelineModel = data => {
  const words = data.words, [laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf] = data.slices;
  const into = (map, key, value) => { if (map.has(key)) map.get(key).push(value); else map.set(key, [value]); };

  // Slices of each lane by start; a lane's slices do not overlap, so their ends are in order, too.
  const inLane = data.lanes.map(() => []), busy = new Float64Array(data.lanes.length);
  let first = Infinity, last = 0, shortest = Infinity;
  for (let i = 0; i < laneOf.length; i++) {
    inLane[laneOf[i]].push(i);
    busy[laneOf[i]] += lengthOf[i];
    first = Math.min(first, startOf[i]);
    last = Math.max(last, startOf[i] + lengthOf[i]);
    if (lengthOf[i] > 0) shortest = Math.min(shortest, lengthOf[i]);
  }
  for (const lane of inLane) lane.sort((a, b) => startOf[a] - startOf[b] || lengthOf[a] - lengthOf[b]);
  for (const [, , times] of data.counters) for (const t of times) last = Math.max(last, t);
  for (const memory of data.memories) for (const tensor of memory[2]) last = Math.max(last, tensor[1]);
  if (data.counters.length || data.memories.length || !(first < Infinity)) first = 0;
  last = Math.max(last, first + 1e-6);
  const whole = last - first, inChain = new Set(data.chain);
  const least = Math.min(Math.max(whole / 1e6, Math.min(shortest, whole) * 2), whole);  // the narrowest window
  const arrows = new Map();
  data.flows.forEach((flow, i) => { into(arrows, flow[0], i); if (flow[1] !== flow[0]) into(arrows, flow[1], i); });

  const firstIn = (lane, when) => {  // the first slice that ends at or after a time
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1, i = lane[middle];
      if (startOf[i] + lengthOf[i] < when) low = middle + 1; else high = middle;
    }
    return low;
  };
  const isBusy = (lane, from, to) => {  // a slice of the lane lies in the window
    const k = firstIn(inLane[lane], from);
    return k < inLane[lane].length && startOf[inLane[lane][k]] <= to;
  };
  const density = (lanes, from, to, count) => {  // the busy lanes of each of `count` parts of a window, on average
    const bins = new Float32Array(count), size = (to - from) / count;
    for (const lane of lanes) {
      for (let k = firstIn(inLane[lane], from); k < inLane[lane].length; k++) {
        const i = inLane[lane][k], begin = (startOf[i] - from) / size, end = begin + lengthOf[i] / size;
        if (begin > count) break;
        const high = Math.min(Math.floor(end), count - 1);
        for (let bin = Math.max(Math.floor(begin), 0); bin <= high; bin++)
          bins[bin] += Math.min(end, bin + 1) - Math.max(begin, bin);
      }
    }
    return bins;
  };

  // Categories, those that take longest first.
  const totals = new Map();
  for (let i = 0; i < laneOf.length; i++) totals.set(categoryOf[i], (totals.get(categoryOf[i]) || 0) + lengthOf[i]);
  const ranks = new Map([...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a)).map((key, i) => [key, i]));

  const format = value => (Math.round(value * 1000) / 1000).toLocaleString('en');
  const moment = value => `${format(value)} ${data.unit}`;
  const isFound = (wanted, i) => wanted && (wanted.has(nameOf[i]) || wanted.has(categoryOf[i]) || wanted.has(detailOf[i]));
  return {
    data, words, laneOf, startOf, lengthOf, nameOf, categoryOf, detailOf, inLane, busy, first, last, whole, least,
    inChain, arrows, totals, ranks, into, firstIn, isBusy, density, format, moment, isFound,
  };
};
