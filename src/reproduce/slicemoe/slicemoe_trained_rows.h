// Turns measurements on a trained model into rows, tables and pictures of the report on SliceMoE.
#pragma once

#include <string>
#include <vector>

#include "reproduce/report.h"
#include "reproduce/slicemoe/slicemoe_trained.h"

namespace sluice::reproduce {

// Rows L-T1, L-F2 and L-F8; without a model (null) the rows say so.
ReportRow quantiser_row(const TrainedResults* found);
ReportRow miss_rate_row(const TrainedResults* found);
ReportRow pareto_row(const TrainedResults* found);

const std::vector<std::string>& trained_row_ids();  // ids of these three rows

// Texts that the model adds to rows that are also replayed.
std::string hot_text(const TrainedResults& found);             // L-F3
std::string equal_accuracy_text(const TrainedResults& found);  // L-F9
std::string critical_text(const TrainedResults& found);        // L-crit

std::vector<ReportSection> trained_sections(const TrainedResults& found);
std::vector<ReportPicture> trained_pictures(const TrainedResults& found);

// One of the paper's orderings, and whether it was found.
struct Ordering {
  std::string claim, found;
  enum class Verdict { kHolds, kFails, kWithinNoise } verdict = Verdict::kHolds;
};
std::vector<Ordering> orderings_of(const TrainedResults& found);

}  // namespace sluice::reproduce
