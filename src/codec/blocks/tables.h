// The numbers that codes of 4 bits stand for, in formats whose codes are places in a table. docs/formats.md.
#pragma once

namespace sluice::codec::blocks {

inline constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// OCP's E2M1; the code 8 is -0.
inline constexpr float kFp4[16] = {0, .5F, 1, 1.5F, 2, 3, 4, 6, -0.F, -.5F, -1, -1.5F, -2, -3, -4, -6};

}  // namespace sluice::codec::blocks
