// How random numbers move with the parameters of their distribution: for a number x that was drawn, minus the slope of
// the distribution's cumulative function in the parameter, divided by its density at x.
#pragma once

namespace umbra::kernels {

/// Of a number drawn from the gamma distribution of that shape and scale 1.
double standard_gamma_gradient(double shape, double x);
/// Of a number drawn from the beta distribution of alpha and total - alpha, divided by 1 - x: the part of a Dirichlet
/// distribution's gradient that belongs to one concentration.
double dirichlet_gradient(double x, double alpha, double total);

}  // namespace umbra::kernels
