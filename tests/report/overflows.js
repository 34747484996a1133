// What sticks out of its box or of the page, where nothing scrolls.
() => {
  const found = [];
  for (const item of document.querySelectorAll('h1,h2,h3,p,li,summary,pre,figcaption,svg,td,th,button,input,select')) {
    const box = item.getBoundingClientRect();
    const scrolls = item.parentElement.closest('.wide,.tall,pre,.grid-svg');
    if (!scrolls && box.width && box.right > document.documentElement.clientWidth + 1)
      found.push(item.tagName + ': ' + item.textContent.slice(0, 60));
  }
  for (const text of document.querySelectorAll('svg.chart text')) {
    const svg = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    if (box.width && (box.right > svg.right + 1 || box.left < svg.left - 1)) found.push('svg: ' + text.textContent);
  }
  for (const group of document.querySelectorAll('svg .bg-op, svg .bg-queue')) {
    const box = group.querySelector('rect').getBoundingClientRect();
    for (const text of group.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.width && (own.right > box.right + 1 || own.bottom > box.bottom + 1)) found.push('op: ' + text.textContent);
    }
  }
  for (const item of document.querySelectorAll('body *')) {  // cut, and no way to scroll there
    const style = getComputedStyle(item);
    if (style.overflowX === 'hidden' && item.scrollWidth > item.clientWidth + 1 && !item.matches('.grid-svg, .grid-svg *'))
      found.push('cut: ' + item.className);
  }
  return found;
}
