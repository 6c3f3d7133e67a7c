// The constants of exp_f32, shared by every instruction set.
// exp(x) = 2^n · e^r with n = round(x / ln 2), |r| ≤ ln 2 / 2.
#pragma once

namespace sluice::kernels::exp_constants {

inline constexpr float kLowest = -105.0f;  // below −103.98 the result rounds to 0
inline constexpr float kHighest = 89.0f;   // above 88.73 it is infinite
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kRound = 12582912.0f;  // 1.5·2^23: a sum with it is an integer, kept in the low bits
inline constexpr float kLn2High = 0.693359375f;  // 9 bits, so that n·kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4f;
// e^r ≈ 1 + r + r²·P(r), minimax on the interval (Cephes expf, S. Moshier), highest power first.
inline constexpr float kPoly[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                   4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

}  // namespace sluice::kernels::exp_constants
