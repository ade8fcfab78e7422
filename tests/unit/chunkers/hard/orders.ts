import { Injectable } from '@angular/core';
/** Keys of things. */
export type Key<T> = { [K in keyof T]: string };
export interface Repo<T extends Entity> extends Base {
  readonly size: number;
  find(id: string): Promise<T>;
  (x: number): string;
}
declare global {
  interface Window { app: App; }
}
namespace Shop.Orders {
  export const limit = 3;
  export function total(o: Order): number { return 1; }
}
declare module 'express' { export function patch(): void; }
export enum Color { Red = 'r', Green = 'g' }
export const enum Flag { A = 1 << 0 }
function add(a: number, b: number): number;
function add(a: string, b: string): string;
function add(a: any, b: any): any {
  return a + b;
}
@Component({ selector: 'x' })
export class Cart<T> extends Base implements Repo<T> {
  static #count = 0;
  @Input() name!: string;
  private readonly items: Map<string, T> = new Map();
  constructor(private readonly http: HttpClient) { super(); }
  get total(): number { return this.items.size; }
  set total(v: number) { /* no */ }
  @HostListener('click', ['$event'])
  onClick(e: Event): void {}
  checkout = async (): Promise<void> => {
    await this.http.post('/x');
  };
  async *pages(): AsyncGenerator<T> { yield* []; }
  [Symbol.iterator]() { return this.items.values(); }
  abstract pay(): void;
  static { Cart.#count = 1; }
  #secret() { return 1; }
}
export default class extends Cart<string> { run() {} }
export const useCart = defineStore('cart', () => {
  const items = ref([]);
  function addItem(i) { items.value.push(i); }
  return { items, addItem };
});
export const routes: Routes = [
  { path: 'a', component: A },
];
const handlers = {
  onOpen() { return 1; },
  onClose: () => 2,
};
export const api = createApi({ endpoints: (build) => ({ getPost: build.query({ query: (id) => `post/${id}` }) }) });
describe('cart', () => {
  it('adds', () => { expect(1).toBe(1); });
});
export abstract class Shape { abstract area(): number; }
export function isOrder(x: unknown): x is Order { return true; }
app.get('/orders', async (req, res) => { res.json([]); });
