// Makes dist/viewer.html: the page with its style, its code and the layout library inside.
import {readFileSync, writeFileSync, mkdirSync} from 'node:fs';
import {build} from 'esbuild';

const bundled = await build({
  entryPoints: ['src/main.js'], bundle: true, minify: true, write: false, format: 'iife', target: 'es2020', charset: 'ascii', legalComments: 'none',
});
const style = await build({entryPoints: ['src/style.css'], minify: true, write: false, loader: {'.css': 'css'}});
const licence = (name) => `${name} ${JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version}\n\n` +
  readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim();
const licences = ['@dagrejs/dagre', '@dagrejs/graphlib'].map(licence).join('\n\n');
const code = bundled.outputFiles[0].text.replaceAll('</script', '<\\/script');
const page = readFileSync('src/page.html', 'utf8')
  .replace('@style@', () => style.outputFiles[0].text.trim())
  .replace('@licences@', () => licences.replaceAll('--', '- -'))
  .replace('@code@', () => code.trim());
mkdirSync('dist', {recursive: true});
writeFileSync('dist/viewer.html', page);
console.log(`dist/viewer.html: ${page.length} bytes`);
