'use strict';
// Draws the arrows of a timeline: those of the critical path, of the slice that is chosen or pointed at, or all.
const timelineArrows = (model, layout, view, g) => {
  const {AXIS, LANE} = TIMELINE;
  const {data, laneOf, startOf, lengthOf, arrows} = model;
  const MOST_LINKS = 24, APART = 14, MOST = 4000;  // links of the path at once, pixels between them, arrows in all

  // The critical path has a link wherever it passes from a lane to another, and the longest links come first: what
  // it reaches counts by the time until the path goes on.
  const links = [];
  data.chain.forEach((slice, k) => {
    const before = data.chain[k - 1];
    if (k && laneOf[slice] !== laneOf[before]) links.push([before, slice, startOf[slice] + lengthOf[slice] - startOf[before]]);
  });
  links.sort((a, b) => b[2] - a[2]);

  const middleOf = slice => layout.laneTop[laneOf[slice]] - view.scroll + LANE / 2;
  const isInView = (source, target) => {
    const {width, height, label, x} = view, isShown = layout.isShown;
    const left = x(startOf[source] + lengthOf[source]), right = x(startOf[target]);
    const high = middleOf(source), low = middleOf(target);
    if (layout.only && !(layout.only.has(laneOf[source]) && layout.only.has(laneOf[target]))) return false;
    if (!isShown[laneOf[source]] && !isShown[laneOf[target]]) return false;  // both in what is folded
    if ((left < label && right < label) || (left > width && right > width)) return false;
    return !((high < AXIS && low < AXIS) || (high > height && low > height));
  };
  const trace = (source, target) => {
    const left = view.x(startOf[source] + lengthOf[source]), right = view.x(startOf[target]);
    const high = middleOf(source), low = middleOf(target), bend = Math.max(12, Math.min(60, Math.abs(right - left) / 2));
    g.beginPath();
    g.moveTo(left, high);
    g.bezierCurveTo(left + bend, high, right - bend, low, right, low);
    return [right, low];
  };
  const draw = (source, target, colour, width, ground) => {
    if (!isInView(source, target)) return false;
    const [right, low] = trace(source, target);
    if (ground) {  // a halo, so that it can be followed over slices
      g.strokeStyle = ground;
      g.lineWidth = width + 2.5;
      g.stroke();
    }
    g.strokeStyle = g.fillStyle = colour;
    g.lineWidth = width;
    g.stroke();
    g.beginPath();
    g.moveTo(right + 1, low);
    g.lineTo(right - 6, low - 3.5);
    g.lineTo(right - 6, low + 3.5);
    g.fill();
    return true;
  };
  const drawPath = ({bad, panel}) => {  // as many as can be told apart; closer ones appear as one zooms in
    const {x} = view, columns = [];
    let shown = 0;
    for (const [source, target] of links) {
      if (shown >= MOST_LINKS) break;
      const column = x(startOf[target]);
      if (columns.some(other => Math.abs(other - column) < APART) || !draw(source, target, bad, 1.3, panel)) continue;
      columns.push(column);
      shown++;
    }
  };
  const MODES = {
    path: drawPath,
    all: ({soft}) => { for (let i = 0, drawn = 0; i < data.flows.length && drawn < MOST; i++) drawn += draw(data.flows[i][0], data.flows[i][1], soft, 0.6); },
    none: () => {},
  };
  return colours => {
    const {width, height, label, chosen, hovered} = view;
    g.save();
    g.beginPath();
    g.rect(label, AXIS, width - label, height - AXIS);
    g.clip();
    MODES[view.arrows](colours);
    for (const slice of new Set([chosen, hovered ? hovered.slice : -1]))
      for (const i of arrows.get(slice) || []) draw(data.flows[i][0], data.flows[i][1], colours.bad, 1.6, colours.panel);
    g.restore();
  };
};
