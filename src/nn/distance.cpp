#include "umbra/nn/distance.h"

#include "umbra/generated/functions.h"

namespace umbra::nn {

CosineSimilarity::CosineSimilarity(int64_t dim, double eps)
    : Layer("torch.nn.modules.distance.CosineSimilarity"), dim_(dim), eps_(eps) {}
Tensor CosineSimilarity::forward(Tensor x1, Tensor x2) { return cosine_similarity(x1, x2, dim_, eps_); }

PairwiseDistance::PairwiseDistance(double p, double eps, bool keepdim)
    : Layer("torch.nn.modules.distance.PairwiseDistance"), p_(p), eps_(eps), keepdim_(keepdim) {}
Tensor PairwiseDistance::forward(Tensor x1, Tensor x2) { return pairwise_distance(x1, x2, p_, eps_, keepdim_); }

}  // namespace umbra::nn
