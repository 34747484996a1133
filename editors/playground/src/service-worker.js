// Keeps all files of this page, so that it opens offline after the first visit. The build fills in the two constants.
const VERSION = "@VERSION@";
const FILES = "@FILES@".split(" ");
const PREFIX = "buda-emu-playground-";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(PREFIX + VERSION).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION;
  event.waitUntil(
    caches.keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  if (new URL(event.request.url).origin !== self.location.origin) return;
  event.respondWith(
    caches.open(PREFIX + VERSION)
      .then((cache) => cache.match(event.request, { ignoreSearch: true }))
      .then((kept) => kept ?? fetch(event.request)),
  );
});
