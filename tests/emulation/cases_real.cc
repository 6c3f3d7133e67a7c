#include "emulation/cases-inl.h"

namespace sluice::emulation {

const Cases kReal = {kCases, sizeof(kCases) / sizeof(Case)};

}  // namespace sluice::emulation
