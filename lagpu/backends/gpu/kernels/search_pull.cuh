// Pull of a fused traversal: open vertices look for predecessors in the frontier; see traverse.cu.
#ifndef LAGPU_SEARCH_PULL_CUH
#define LAGPU_SEARCH_PULL_CUH
#include "search.cuh"

const u32 kLook = 8;       // predecessors that a lane looks at alone
const u32 kMany = 2048;    // predecessors from which the whole block looks
const u32 kDeferred = 32;  // such vertices a block keeps for later
const u32 kBatch = 4;      // of them at once

// Look at predecessors p .. end of vertex j, kBatch at a time so that their loads overlap, and at
// most `most` of them; with LG_SUM 0 until the first in the frontier. Returns where it stopped.
LG_DEVICE i64 look(const Search& s, i64 p, i64 end, i32 j, u32 most, bool* hit, LG_Z* sum) {
  const i64 limit = end - p > most ? p + most : end;
  for (; p < limit && (LG_SUM || !*hit); p += kBatch) {
    i32 i[kBatch];
    bool there[kBatch];
    for (u32 q = 0; q < kBatch; ++q) i[q] = p + q < limit ? i32(load_ro(&s.in_idx[p + q])) : -1;
    for (u32 q = 0; q < kBatch; ++q) there[q] = i[q] >= 0 && has_entry(s.frontier(), i[q]);
    for (u32 q = 0; q < kBatch; ++q) {
      if (!there[q] || (!LG_SUM && *hit)) continue;
      const LG_Z z = product(s, s.in_values, p + q, i[q], j);
      *sum = *hit ? add<LG_ADD>(*sum, z) : z;
      *hit = true;
    }
  }
  return p < limit ? p : limit;
}

// The same by the whole warp for one vertex, 128 predecessors at a time.
LG_DEVICE void look_together(const Search& s, i64 p, i64 end, i32 j, bool* hit, LG_Z* sum,
                             Tally* tally) {
  bool found = false;
  LG_Z mine = LG_ADD::identity<LG_Z>();
  for (; p < end; p += 128) {
    i32 i[4];
    bool there[4];
    for (u32 q = 0; q < 4; ++q) {
      const i64 at = p + q * 32 + lane_id();
      i[q] = at < end ? i32(load_ro(&s.in_idx[at])) : -1;
      LG_LOGGED(if (!LG_SUM) tally->looked += at < end;)
    }
    for (u32 q = 0; q < 4; ++q) there[q] = i[q] >= 0 && has_entry(s.frontier(), i[q]);
    for (u32 q = 0; q < 4; ++q) {
      if (!there[q] || (!LG_SUM && found)) continue;
      const LG_Z z = product(s, s.in_values, p + q * 32 + lane_id(), i[q], j);
      mine = found ? add<LG_ADD>(mine, z) : z;
      found = true;
    }
    if (!LG_SUM && warp_any(found)) break;
  }
  const u32 finders = warp_ballot(found);
  if (!finders) return;
  if constexpr (LG_SUM) {
    for (u32 step = 16; step; step /= 2) {
      const LG_Z other = warp_shfl_xor(mine, step);
      const bool other_found = warp_shfl_xor(found, step);
      if (other_found) mine = found ? add<LG_ADD>(mine, other) : other;
      found = found || other_found;
    }
  } else {
    mine = warp_shfl(mine, bit_ffs(finders) - 1);
  }
  *sum = LG_SUM && *hit ? add<LG_ADD>(*sum, mine) : mine;
  *hit = true;
}

// What a pull loads of 32 vertices before it looks at them.
struct Ahead {
  u32 seen;  // visited, or past the last vertex
  i32 hint;
  LG_PTR begin, end;
};

LG_DEVICE u32 visited_word(const Search& s, i64 w, i64 nwords) {
  return w < nwords ? s.visited[w] | ~entry_bits(nullptr, w, s.n) : 0xffffffffu;
}

LG_DEVICE Ahead ahead(const Search& s, i64 w, u32 seen) {
  Ahead a{seen, -1, 0, 0};
  if (!(seen >> lane_id() & 1)) {
    const i64 j = w * 32 + lane_id();
    if (!LG_SUM && s.hint) a.hint = load_ro(&s.hint[j]);
    a.begin = load_ro(&s.in_ptr[j]);
    a.end = load_ro(&s.in_ptr[j + 1]);
  }
  return a;
}

// Vertices whose many predecessors one warp would take long to look at: the whole block does.
struct Deferred {
  i64 begin[kDeferred], end[kDeferred];
  i32 vertex[kDeferred];
  u32 count;
  LG_Z value;
  u32 taken;  // whether `value` has been given
};

// Look at the deferred vertices, each by all warps of the block; ends with a barrier.
LG_DEVICE void look_as_block(const Search& s, Deferred* later, u32 depth, Tally* tally) {
  block_sync();
  const u32 count = later->count < kDeferred ? later->count : kDeferred;
  for (u32 k = 0; k < count; ++k) {
    const i32 j = later->vertex[k];
    if (block_thread() == 0) later->taken = 0;
    block_sync();
    bool found = false;
    for (i64 p = later->begin[k]; p < later->end[k]; p += block_threads()) {
      const i64 at = p + block_thread();
      const i32 i = at < later->end[k] ? i32(load_ro(&s.in_idx[at])) : -1;
      LG_LOGGED(tally->looked += i >= 0;)
      if (i >= 0 && has_entry(s.frontier(), i)) {
        found = true;
        if (!atomic_exch(&later->taken, 1u)) later->value = product(s, s.in_values, at, i, j);
      }
      if (block_any(found)) break;
    }
    block_sync();
    if (block_thread() == 0 && later->taken) {
      discover(s, j, depth + s.shift, cast<LG_F>(later->value));
      s.next()[j / 32] |= 1u << (j % 32);  // the block's own word, written before the barrier
      s.visited[j / 32] |= 1u << (j % 32);
      ++tally->found;
    }
    block_sync();
  }
  if (count && block_thread() == 0) later->count = 0;  // all have read it: there were barriers
}

// Pull into every vertex that is not visited: 32 vertices a warp, first the hint, then some
// predecessors by each lane, the rest by the whole warp.
LG_DEVICE void pull(const Search& s, u32 depth, Deferred* later, Tally* tally) {
  const i64 nwords = (s.n + 31) / 32;
  // Two words ahead the visited bits are loaded, one word ahead what those ask for.
  Ahead next = ahead(s, global_warp(), visited_word(s, global_warp(), nwords));
  u32 seen_after = visited_word(s, global_warp() + global_warps(), nwords);
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const Ahead now = next;
    next = ahead(s, w + global_warps(), seen_after);
    seen_after = visited_word(s, w + 2 * global_warps(), nwords);
    if (now.seen == 0xffffffffu) {
      if (lane_id() == 0) s.next()[w] = 0;
      continue;
    }
    const i32 j = i32(w * 32) + i32(lane_id());
    const bool wanted = !(now.seen >> lane_id() & 1);
    bool hit = false;
    LG_Z sum = LG_ADD::identity<LG_Z>();
    i64 p = now.begin;
    const i64 end = now.end;
    if (wanted) {
      if (now.hint >= 0 && has_entry(s.frontier(), now.hint)) {
        sum = product(s, s.in_values, 0, now.hint, j);
        hit = true;
        LG_LOGGED(++tally->looked;)
      } else {
        p = look(s, p, end, j, kLook, &hit, &sum);
        LG_LOGGED(tally->looked += u32((LG_SUM ? end : p) - now.begin);)  // a sum looks at all
      }
    }
    for (u32 rest = warp_ballot(wanted && (LG_SUM || !hit) && p < end); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      if (!LG_SUM && warp_shfl(end, from) - warp_shfl(p, from) > kMany) {
        u32 at = 0;
        if (lane_id() == from) {
          at = atomic_add(&later->count, 1u);
          if (at < kDeferred) {
            later->begin[at] = p;
            later->end[at] = end;
            later->vertex[at] = j;
          }
        }
        if (warp_shfl(at, from) < kDeferred) continue;
      }
      bool its_hit = warp_shfl(hit, from);
      LG_Z its_sum = warp_shfl(sum, from);
      look_together(s, warp_shfl(p, from), warp_shfl(end, from), warp_shfl(j, from), &its_hit,
                    &its_sum, tally);
      if (lane_id() == from) {
        hit = its_hit;
        sum = its_sum;
      }
    }
    const u32 bits = warp_ballot(hit);
    if (hit) {
      if (LG_SUM) s.f_values[j] = cast<LG_F>(sum);
      if (LG_SUM) s.found_in[j] = i32(depth) + 1;
      discover(s, j, depth + s.shift, cast<LG_F>(sum));
    }
    if (lane_id() == 0) {
      s.next()[w] = bits;
      s.visited[w] = now.seen | bits;
      tally->found += bit_popc(bits);
    }
  }
}

#endif  // LAGPU_SEARCH_PULL_CUH
