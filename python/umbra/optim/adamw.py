"""Adam whose weight decay leaves the moments alone."""
from umbra.optim._as_function import as_function
from umbra.optim.adam import Adam


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself."""
    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False,
                 foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused)


adamw = as_function(AdamW, "adamw", {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "max_exp_avg_sqs": "max_exp_avg_sq", "state_steps": "step"},
                    "foreach capturable differentiable fused grad_scale found_inf has_complex",
                    "amsgrad beta1 beta2 lr weight_decay eps maximize")
