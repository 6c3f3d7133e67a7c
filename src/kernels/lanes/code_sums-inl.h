// Sums of products of codes: weights in CodeBytes, activations in signed bytes of -127 … 127. A
// code_sums_ISA-inl.h offers CodeBytes in order, as code_bytes-inl.h says, and
//   Whole8               eight whole numbers of 32 bits; Float8: eight floats
//   products<kMost>(w, x) of 32 unsigned codes, at most kMost, in lane l the sum of columns 4l … 4l+3
//   signed_products      the same of any signed codes plus kSignedZero
//   sums_of_eight(v)     in lane g the sum of v[g]
//   weighed_sums(v, s)   the same, where each half of v[g] has a scale: bytes 2g and 2g+1 of s
//   halves_by(s, p)      in lane g s[2g]·p[2g] + s[2g+1]·p[2g+1], p whole numbers of 16 bits in memory
//   transpose_words      eight rows of eight words become columns
// and for tiles of kLanes rows, a row in each lane (coded_blocks-inl.h), kTileCodedTokens tokens in registers
// and kCodedTokens at a time in the cache:
//   TileWhole TileFloats TileCodes   whole numbers, floats, four codes of each row; tile_… loads them
//   signed_factors(w)    what a tile stores of signed codes
//   store_sizes          |codes| beside these, where kSizesApart
//   four_bytes(p)        Repeated: four codes of a token, or a pair of whole numbers of 16 bits, for all rows
//   quad_products, add_quad   QuadSums of four codes of each row and of a token, at most kPairsIn16<kMost> of
//                        them added, where signed codes have kMost 0; whole_of(QuadSums) ends them
//   pairs_by first_of_pairs second_of_pairs   of pairs of whole numbers of 16 bits
#pragma once

#include <cstdint>

namespace sluice::kernels {
namespace {

// What codes of four bits stand for.
struct alignas(16) ByteTable {
  std::int8_t values[16];
};

}  // namespace
}  // namespace sluice::kernels
