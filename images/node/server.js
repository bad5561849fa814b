// The service of workload http.node, and the node application of startup and
// density: Express renders an EJS template with texts from memory.
//
//   node server.js PORT [WORKERS] [TEXTS]
//
// GET / answers 200 with a page that always has the same length: TEXTS (default
// 4) of 100 texts of 1024 letters and digits, others at each request. WORKERS (default
// 1) processes share the port; one alone runs without the cluster module.
'use strict';
const cluster = require('cluster');
const express = require('express');

const [port, workers, count] = [8080, 1, 4].map((d, i) => {
  const n = process.argv[2 + i] === undefined ? d : Number(process.argv[2 + i]);
  if (!Number.isInteger(n) || n < 0 || (i > 0 && n < 1)) {
    console.error('usage: node server.js PORT [WORKERS] [TEXTS]');
    process.exit(2);
  }
  return n;
});

// The same texts on every machine: a linear congruential generator (Numerical
// Recipes, chapter 7.1) instead of a database filled at random.
let state = 1;
function random(n) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 4294967296 * n);
}
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const texts = Array.from({length: 100}, () => Array.from({length: 1024}, () => letters[random(62)]).join(''));

function serve() {
  const app = express();
  app.set('views', __dirname);
  app.set('view engine', 'ejs');
  app.enable('view cache'); // as with NODE_ENV=production
  app.get('/', (req, res) => {
    res.render('page', {texts: Array.from({length: count}, () => texts[random(texts.length)])});
  });
  const server = app.listen(port, '0.0.0.0', () => console.error(`listening on port ${server.address().port}`));
  server.on('error', (err) => {
    console.error(`cannot listen on port ${port}: ${err.message}`);
    process.exit(1);
  });
}

if (workers > 1 && cluster.isMaster) {
  for (let i = 0; i < workers; i++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || 'exit code ' + code}`);
    process.exit(1);
  });
} else {
  serve();
}
