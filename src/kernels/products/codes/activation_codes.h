// Activations in codes of 8 bits, and their products with weights in codes (sliced_matmul.h,
// int8_matmul_impl.h): what a Context with ActivationForm::kInt8 computes. Products of codes are whole
// numbers; one instruction adds up to 64 of them, in any order.
//
// CODES. For one token, columns are taken in groups of 32, the last one padded with zeros. With m the largest
// |x| of a group:
//   m is infinite or NaN   scale = NaN, all codes 0
//   m < 2^-100             scale = 0, all codes 0
//   else                   scale = m / 127, code = x · (127 / m) to the nearest whole number, ties to
//                          even: -127 … 127. Divisions and the product are rounded to fp32 first
//
// ORDER OF SUMS. For one output element, with q the codes of the weights and z their zero points (in slices
// as sliced_matmul.h says; dense matrices have signed codes and z = 0), c the codes of the activations:
//   group    sum = Σ q·c − z·Σ c of 32 columns, exactly (a multiple of 2^-5 below 2^21: no float is rounded)
//   row      total = fma(weight scale, activation scale · sum, total), groups ascending, from +0
//   y        f·total (f as in sliced_matmul.h, 1 of dense matrices), plus the bias
// Every instruction set, number of tokens and number of threads follows this order, so the same inputs give
// the same bits everywhere; only the payload of a NaN may differ. A NaN or an infinity among the
// activations of a token makes all its outputs NaN.
//
// ERROR. A code is within 0.5001 of x / scale. So an activation is off by at most 0.5001/127 of the
// largest of its group. Besides the effect of that, y is off by at most (groups + 3)·2^-24 of Σ
// |scale|·|activation scale · sum| and |bias|.
#pragma once

#include <cstddef>

#include "kernels/context.h"

namespace sluice::kernels {

// Floats of one token with G groups. In order: codes of all columns (a byte each, 8·G floats), scales (G), −Σ
// c (G). Any alignment.
constexpr std::size_t activation_code_floats(std::size_t columns) { return (columns + 31) / 32 * 10; }

// x (tokens, columns), row t at x + t*x_stride → row t at codes + t*codes_stride.
void code_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                      std::size_t x_stride, float* codes, std::size_t codes_stride);

}  // namespace sluice::kernels
