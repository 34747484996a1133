'use strict';
// The picture of the core grid: fits, zooms, pans; writes as much into its boxes as is readable; colours the ops by heat
// or by type; shows the arrows of what is chosen or pointed at.
const gridView = view => {
  const svg = view.querySelector('svg'), box = view.querySelector('.grid-svg');
  if (!svg) return;
  const [, , wide, high] = svg.getAttribute('viewBox').split(' ').map(Number);
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  const labels = [...svg.querySelectorAll('.bg-op, .bg-queue')].map(group => {
    const rect = group.querySelector('rect'), place = name => parseFloat(rect.getAttribute(name));
    const texts = [...group.querySelectorAll('text')];
    const words = texts.map(text => text.dataset.full ?? text.textContent);
    texts.slice(1).forEach(text => text.remove());
    return {text: texts[0], words, x: place('x'), y: place('y'), width: place('width'), height: place('height'), room: parseFloat(group.dataset.room ?? place('height')), group};
  });
  for (const label of labels) {  // places within the whole picture
    const panel = label.group.closest('g[transform]').transform.baseVal[0].matrix;
    label.left = label.x + panel.e;
    label.top = label.y + panel.f;
  }
  const ops = labels.filter(label => label.group.classList.contains('bg-op'));
  const shortName = shortNames(labels.map(label => label.words[0]));
  let x = 0, y = 0, scale = 1, width = 0, height = 1, waiting = false, touched = false;

  const WIDTH = 0.62, LINE = 1.22;
  const LEGIBLE = 0.75;  // scale above which boxes have room for what they say
  const lines = (words, most, count) => {  // a name over as many lines as there are, then what else fits
    const [name, ...rest] = words, found = [], own = Math.max(1, count - Math.min(rest.length, 1));
    const short = shortName(name, own * most);
    for (let at = 0; at < short.length; at += most) found.push(short.slice(at, at + most));
    const named = found.length;
    for (const word of rest) if (found.length < count && word.length <= most) found.push(word);
    return [found, named];
  };
  const draw = () => {
    waiting = false;
    svg.setAttribute('viewBox', `${x} ${y} ${width / scale} ${height / scale}`);
    const size = Math.min(Math.max(11 * scale, 11), 14) / scale;
    for (const label of labels) {
      const {text, words} = label;
      const away = label.left > x + width / scale || label.top > y + height / scale || label.left + label.width < x || label.top + label.height < y;
      const hidden = Math.max(x - label.left, 0);  // at its left: what is written begins where it is seen
      const seen = Math.min(label.width - hidden, x + width / scale - label.left - hidden);
      const most = Math.floor((seen - 8 / scale) / (size * WIDTH)), count = Math.floor((label.room - 4 / scale) / (size * LINE));
      text.textContent = '';
      if (away || most < 4 || count < 1) continue;
      text.setAttribute('font-size', size);
      const [found, named] = lines(words, most, count);
      found.forEach((line, i) => {
        const span = document.createElementNS('http://www.w3.org/2000/svg', 'tspan');
        span.textContent = line;
        span.setAttribute('x', label.x + hidden + 4 / scale);
        span.setAttribute('y', label.y + 3 / scale + size * (LINE * i + 0.9));
        if (i >= named) span.setAttribute('class', 'more');
        text.append(span);
      });
    }
  };
  const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const clamp = () => {
    const least = Math.min(width / wide, height / high) * 0.9;
    scale = Math.min(Math.max(scale, least), 8);
    const keep = (at, room, size) => room >= size ? (size - room) / 2 : Math.min(Math.max(at, -20 / scale), size - room + 20 / scale);
    x = keep(x, width / scale, wide);
    y = keep(y, height / scale, high);
  };
  const show = (left, top, right, bottom) => {
    scale = Math.min(width / (right - left), height / (bottom - top), 2);
    x = (left + right - width / scale) / 2;
    y = (top + bottom - height / scale) / 2;
    clamp();
    redraw();
  };
  const all = () => show(0, 0, wide, high);
  const theOps = () => {
    const of = (list, edge) => list.reduce(edge, edge === Math.min ? Infinity : -Infinity);
    if (!ops.length) return all();
    let [left, top, right, bottom] = [Infinity, Infinity, 0, 0];
    for (const op of ops) {
      [left, top] = [Math.min(left, op.left), Math.min(top, op.top)];
      [right, bottom] = [Math.max(right, op.left + op.width), Math.max(bottom, op.top + op.height)];
    }
    show(left - 40, top - 30, right + 20, bottom + 20);
    for (let lanes = 0; lanes < 3; lanes++) {  // no queue stands half outside at the left
      const cut = labels.filter(label => label.left < x && label.left + label.width > x);
      if (!cut.length) return;
      show(Math.min(...cut.map(label => label.left)) - 8, top - 30, right + 20, bottom + 20);
    }
  };
  const zoom = (factor, px = width / 2, py = height / 2) => {
    touched = true;
    const before = scale, [u, v] = [x + px / scale, y + py / scale];
    scale *= factor;
    clamp();
    if (scale !== before) { x = u - px / scale; y = v - py / scale; }
    clamp();
    redraw();
  };
  const pan = (dx, dy) => { touched = true; x -= dx / scale; y -= dy / scale; clamp(); redraw(); };
  const resize = () => {
    if (!box.clientWidth || box.clientWidth === width) return;
    const [u, v] = [x + width / scale / 2, y + height / scale / 2];
    width = box.clientWidth;
    height = Math.max(260, Math.min(innerHeight * 0.74, width * Math.max(high / wide, 0.6)));
    box.style.height = height + 'px';
    if (!touched) return Math.min(width / wide, height / high) > LEGIBLE ? all() : theOps();
    x = u - width / scale / 2;
    y = v - height / scale / 2;
    clamp();
    redraw();
  };

  view.querySelectorAll('button[data-do]').forEach(button => {
    button.onclick = {in: () => zoom(1.5), out: () => zoom(1 / 1.5), all, ops: theOps}[button.dataset.do];
  });
  const colour = view.querySelector('.grid-colour'), edges = view.querySelector('.grid-edges');
  const paint = () => {
    svg.classList.toggle('bg-hot', colour.value === 'heat');
    view.classList.toggle('by-heat', colour.value === 'heat');
  };
  colour.hidden = !svg.querySelector('.bg-heat');
  colour.value = colour.hidden ? 'type' : 'heat';
  colour.onchange = paint;
  paint();
  edges.onchange = () => view.classList.toggle('all-edges', edges.checked);
  const point = name => {  // the arrows of the op or queue under the pointer
    for (const edge of svg.querySelectorAll('.bg-edge'))
      edge.classList.toggle('lit', Boolean(name) && (edge.dataset.from === name || edge.dataset.to === name));
  };
  svg.addEventListener('pointerover', event => point(event.target.closest('[data-name]')?.dataset.name));
  svg.addEventListener('pointerleave', () => point(''));
  const pointers = new Map();
  let moved = 0;
  box.addEventListener('pointerdown', event => { pointers.set(event.pointerId, event); moved = 0; });
  addEventListener('pointermove', event => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const others = [...pointers.values()].filter(other => other.pointerId !== event.pointerId);
    if (others.length) {
      const far = one => Math.max(Math.hypot(one.clientX - others[0].clientX, one.clientY - others[0].clientY), 8);
      const at = box.getBoundingClientRect();
      zoom(far(event) / far(before), (event.clientX + others[0].clientX) / 2 - at.left, (event.clientY + others[0].clientY) / 2 - at.top);
    }
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    if (moved > 3) pan((event.clientX - before.clientX) / (others.length + 1), (event.clientY - before.clientY) / (others.length + 1));
    pointers.set(event.pointerId, event);
  });
  for (const kind of ['pointerup', 'pointercancel']) addEventListener(kind, event => pointers.delete(event.pointerId));
  box.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls on
    const at = box.getBoundingClientRect();
    zoom(Math.min(Math.max(Math.exp(-event.deltaY * 0.002), 0.8), 1.25), event.clientX - at.left, event.clientY - at.top);
    event.preventDefault();
  }, {passive: false});
  view.addEventListener('keydown', event => {
    const keys = {
      '+': () => zoom(1.4), '=': () => zoom(1.4), '-': () => zoom(1 / 1.4), '0': all,
      ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
    };
    if (!keys[event.key] || event.target !== view) return;
    keys[event.key]();
    event.preventDefault();
  });
  svg.addEventListener('click', event => {
    const group = event.target.closest('[data-name]');
    if (moved <= 3) choose(group ? group.dataset.name : '', view);
  });
  view.mark = (name, producers, consumers) => {
    svg.classList.toggle('choosing', Boolean(name));
    for (const group of svg.querySelectorAll('[data-name]')) {
      const own = group.dataset.name;
      group.classList.toggle('here', own === name);
      group.classList.toggle('near', producers.has(own) || consumers.has(own));
    }
    for (const edge of svg.querySelectorAll('.bg-edge')) {
      edge.classList.toggle('from', edge.dataset.to === name);
      edge.classList.toggle('to', edge.dataset.from === name);
    }
    const label = labels.find(item => item.group.dataset.name === name);
    if (!label) return;
    const [u, v] = [label.left + label.width / 2, label.top + label.height / 2];
    if (u < x || v < y || u > x + width / scale || v > y + height / scale) {
      x = u - width / scale / 2;
      y = v - height / scale / 2;
      clamp();
    }
    redraw();
  };
  new ResizeObserver(resize).observe(box);
  resize();
};
