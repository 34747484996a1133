// Texts whose contrast against what stands behind them is under 4.5 to 1; the colours of timelines too.
() => {
  const parse = text => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [r, g, b, text === 'none' || text === 'transparent' ? 0 : a];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = rgb => rgb.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const page = item => {  // what stands behind an element of HTML
    const layers = [];
    for (; item; item = item.parentElement) layers.push(parse(getComputedStyle(item).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const drawn = text => {  // and behind a text of a picture: the boxes of its group on those of its panel
    const groups = [], svg = text.ownerSVGElement;
    for (let group = text.parentElement; group && group !== svg; group = group.parentElement) groups.unshift(group);
    let below = page(svg);
    for (const group of groups)
      for (const rect of group.querySelectorAll(':scope > rect')) {
        const at = rect.getBBox(), own = text.getBBox();
        if (own.x < at.x - 1 || own.x > at.x + at.width || own.y > at.y + at.height || own.y + own.height < at.y) continue;
        const style = getComputedStyle(rect), fill = parse(style.fill);
        below = over([...fill.slice(0, 3), fill[3] * parseFloat(style.fillOpacity)], below);
      }
    return below;
  };
  const poor = [];
  const judge = (what, a, b) => {
    const [x, y] = [light(over(a, b)), light(b)], ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
    if (ratio < 4.5) poor.push(`${what}: ${ratio.toFixed(2)}`);
  };
  for (const item of document.querySelectorAll('main *, aside *')) {
    if (!item.getClientRects().length || ![...item.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const style = getComputedStyle(item);
    if (item.closest('script, style, title, option')) continue;
    const name = `${item.tagName} ${item.textContent.trim().slice(0, 40)}`;
    if (item.closest('svg')) judge(name, parse(style.fill), drawn(item.closest('text')));
    else judge(name, parse(style.color), page(item));
  }
  for (const item of document.querySelectorAll('main input[type=search]'))
    judge('placeholder', parse(getComputedStyle(item, '::placeholder').color), page(item));
  const probe = document.createElement('i');
  document.body.append(probe);
  const colour = name => { probe.style.color = `var(${name})`; return parse(getComputedStyle(probe).color); };
  for (let i = 0; i < 10; i++) judge(`--ink on --k${i}`, colour('--ink'), colour(`--k${i}`));
  judge('--soft on --line', colour('--ink'), colour('--line'));
  probe.remove();
  return poor;
}
