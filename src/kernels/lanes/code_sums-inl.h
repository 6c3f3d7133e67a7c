// Sums of products of codes: weights in CodeBytes, activations in signed bytes of -127 … 127. A
// code_sums_ISA-inl.h offers CodeBytes in order, as code_bytes-inl.h says, and
//   Whole8               eight whole numbers of 32 bits; Float8: eight floats
//   products<kMost>(w, x) of 32 unsigned codes, at most kMost, in lane l the sum of columns 4l … 4l+3
//   signed_products      the same of any signed codes
//   sums_of_eight(v)     in lane g the sum of v[g]
//   weighed_sums(v, s)   the same, where each half of v[g] has a scale: bytes 2g and 2g+1 of s
//   halves_by(s, p)      in lane g s[2g]·p[2g] + s[2g+1]·p[2g+1], p whole numbers of 16 bits in memory
// and what tiles of eight rows need, a row in each lane (coded_blocks-inl.h).
#pragma once
