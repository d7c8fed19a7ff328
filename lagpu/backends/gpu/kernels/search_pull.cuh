// Pull of a fused traversal: open vertices look for predecessors in the frontier; see traverse.cu.
#ifndef LAGPU_SEARCH_PULL_CUH
#define LAGPU_SEARCH_PULL_CUH
#include "search.cuh"

const u32 kLook = 8;       // predecessors that a lane looks at alone
const u32 kMany = 2048;    // predecessors from which the whole block looks
const u32 kDeferred = 32;  // such vertices a block keeps for later
const u32 kBatch = 4;      // of them at once

// Look at predecessors p .. p + count of vertex j, kBatch at a time so that their loads overlap;
// with LG_SUM 0 until the first in the frontier. Returns how many it has looked at. Where fewer are
// left the last is loaded again: loads behind a branch would wait for one another.
LG_DEVICE u32 look(const Search& s, LG_PTR p, u32 count, i32 j, bool* hit, LG_Z* sum) {
  u32 done = 0;
  for (; done < count && (LG_SUM || !*hit); done += kBatch) {
    i32 i[kBatch];
    u32 word[kBatch];
    for (u32 q = 0; q < kBatch; ++q)
      i[q] = i32(load_ro(&s.in_idx[p + LG_PTR(done + q < count ? done + q : count - 1)]));
    for (u32 q = 0; q < kBatch; ++q) word[q] = s.frontier()[i[q] / 32];
    u32 there = 0;
    for (u32 q = 0; q < kBatch; ++q) there |= (word[q] >> (i[q] % 32) & 1) << q;
    if (count - done < kBatch) there &= (1u << (count - done)) - 1;
    if (!there) continue;
    for (u32 q = 0; q < kBatch; ++q) {
      if (!(there >> q & 1) || (!LG_SUM && *hit)) continue;
      const LG_Z z = product(s, s.in_values, p + LG_PTR(done + q), i[q], j);
      *sum = *hit ? add<LG_ADD>(*sum, z) : z;
      *hit = true;
    }
  }
  return done < count ? done : count;
}

// The same by the whole warp for one vertex, 128 predecessors at a time.
LG_DEVICE void look_together(const Search& s, LG_PTR p, u32 count, i32 j, bool* hit, LG_Z* sum,
                             Tally* tally) {
  bool found = false;
  LG_Z mine = LG_ADD::identity<LG_Z>();
  u32 done = lane_id();
  for (; done - lane_id() < count; done += 128) {
    i32 i[4];
    u32 word[4];
    for (u32 q = 0; q < 4; ++q) {
      const u32 at = done + q * 32;
      i[q] = i32(load_ro(&s.in_idx[p + LG_PTR(at < count ? at : count - 1)]));
    }
    for (u32 q = 0; q < 4; ++q) word[q] = s.frontier()[i[q] / 32];
    u32 there = 0;
    for (u32 q = 0; q < 4; ++q) there |= (word[q] >> (i[q] % 32) & 1) << q;
    const u32 left = done < count ? (count - done + 31) / 32 : 0;
    if (left < 4) there &= (1u << left) - 1;
    for (u32 q = 0; q < 4; ++q) {
      if (!(there >> q & 1) || (!LG_SUM && found)) continue;
      const LG_Z z = product(s, s.in_values, p + LG_PTR(done + q * 32), i[q], j);
      mine = found ? add<LG_ADD>(mine, z) : z;
      found = true;
    }
    if (!LG_SUM && warp_any(found)) break;
  }
  LG_LOGGED(if (!LG_SUM && lane_id() == 0) tally->looked +=
            done + 128 < count ? done + 128 : count;)
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
    const u32 count = u32(now.end - now.begin);
    u32 done = 0;
    if (wanted) {
      if (now.hint >= 0 && has_entry(s.frontier(), now.hint)) {
        sum = product(s, s.in_values, 0, now.hint, j);
        hit = true;
        LG_LOGGED(++tally->looked;)
      } else {
        done = look(s, now.begin, count < kLook ? count : kLook, j, &hit, &sum);
        LG_LOGGED(tally->looked += LG_SUM ? count : done;)  // a sum looks at all
      }
    }
    for (u32 rest = warp_ballot(wanted && (LG_SUM || !hit) && done < count); rest;
         rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      const LG_PTR p = warp_shfl(now.begin + LG_PTR(done), from);
      const u32 left = warp_shfl(count - done, from);
      if (!LG_SUM && left > kMany) {
        u32 at = 0;
        if (lane_id() == from) {
          at = atomic_add(&later->count, 1u);
          if (at < kDeferred) {
            later->begin[at] = p;
            later->end[at] = i64(p) + left;
            later->vertex[at] = j;
          }
        }
        if (warp_shfl(at, from) < kDeferred) continue;
      }
      bool its_hit = warp_shfl(hit, from);
      LG_Z its_sum = warp_shfl(sum, from);
      look_together(s, p, left, warp_shfl(j, from), &its_hit, &its_sum, tally);
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
