/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/foreign/variables.h"

#include <string.h>

#include "jobs/foreign/options.h"
#include "lib/base/cleanup.h"

#define OFF "0 false no off"
#define MAPPING "ranks fill a worker before the next one; --ranks-per-worker R is how many"
#define BINDING "--bind none, core, core:N, numa or a list as 0-1;2-3"
#define FILES "--output-dir DIR"
#define HOSTFILE "--hostfile FILE"
#define GO_ON "--on-rank-failure=continue"
#define ON "1 true yes on enable"
#define SIGNALS "ranks get SIGTERM, and SIGKILL after --kill-after TIME"

const struct foreign_variable foreign_variables[] = {
    {FOREIGN_MPI, "MPIEXEC_TIMEOUT", "0 -1", FOREIGN_SAID_TIMEOUT, "--timeout", ""},
    {FOREIGN_INTEL, "I_MPI_JOB_TIMEOUT", "0 -1", FOREIGN_SAID_TIMEOUT, "--timeout", ""},
    {FOREIGN_INTEL, "I_MPI_MPIEXEC_TIMEOUT", "0 -1", FOREIGN_SAID_TIMEOUT, "--timeout", ""},
    {FOREIGN_HYDRA, "MPIEXEC_TIMEOUT_SIGNAL", NULL, FOREIGN_SAID_NOTHING, NULL, SIGNALS},
    {FOREIGN_INTEL, "I_MPI_JOB_TIMEOUT_SIGNAL", NULL, FOREIGN_SAID_NOTHING, NULL, SIGNALS},
    {FOREIGN_INTEL, "I_MPI_JOB_ABORT_SIGNAL", NULL, FOREIGN_SAID_NOTHING, NULL, SIGNALS},
    {FOREIGN_INTEL, "I_MPI_JOB_STARTUP_TIMEOUT", NULL, FOREIGN_SAID_NOTHING, NULL,
     "--start-timeout TIME"},
    {FOREIGN_INTEL, "I_MPI_FAULT_CONTINUE", OFF " disable", FOREIGN_SAID_FAILURE, GO_ON, ON},

    {FOREIGN_HYDRA, "HYDRA_HOST_FILE", NULL, FOREIGN_SAID_WORKERS, NULL, HOSTFILE},
    {FOREIGN_INTEL, "I_MPI_HYDRA_HOST_FILE", NULL, FOREIGN_SAID_WORKERS, NULL, HOSTFILE},
    {FOREIGN_INTEL, "I_MPI_HYDRA_HOSTS_GROUP", NULL, FOREIGN_SAID_WORKERS, NULL, HOSTFILE},
    {FOREIGN_HYDRA, "HYDRA_CONFIG_FILE", NULL, FOREIGN_SAID_NOTHING, NULL,
     "-n 1 FIRST : -n 3 SECOND"},
    {FOREIGN_HYDRA, "HYDRA_ENV", "all", FOREIGN_SAID_NOTHING, NULL, "-genvnone or -genvlist A,B"},
    {FOREIGN_HYDRA, "HYDRA_PPN", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_INTEL, "I_MPI_PERHOST", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_HYDRA, "HYDRA_BINDING", "none", FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_HYDRA, "HYDRA_MAPPING", NULL, FOREIGN_SAID_BIND, NULL, MAPPING},
    {FOREIGN_HYDRA, "HYDRA_MEMBIND", "none", FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN", OFF " disable", FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_DOMAIN", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_PROCESSOR_LIST", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_PROCESSOR_EXCLUDE_LIST", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_ORDER", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_CELL", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_MODE", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_RESPECT_CPUSET", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_PIN_RESPECT_HCA", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_INTEL, "I_MPI_SILENT_ABORT", OFF, FOREIGN_SAID_NOTHING, NULL, "-q"},
    {FOREIGN_INTEL, "I_MPI_JOB_TRACE_LIBS", NULL, FOREIGN_SAID_NOTHING, NULL,
     "-x LD_PRELOAD=LIBRARY"},
    {FOREIGN_INTEL, "I_MPI_JOB_CHECK_LIBS", NULL, FOREIGN_SAID_NOTHING, NULL,
     "-x LD_PRELOAD=LIBRARY"},
    {FOREIGN_HYDRA, "HYDRA_DEBUG", OFF, FOREIGN_SAID_NOTHING, NULL, "-v"},
    {FOREIGN_INTEL, "I_MPI_HYDRA_DEBUG", OFF, FOREIGN_SAID_NOTHING, NULL, "-v"},
    {FOREIGN_INTEL, "I_MPI_GTOOL", NULL, FOREIGN_SAID_NOTHING, NULL,
     "start the tool as the program"},

    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_default_hostfile", NULL, FOREIGN_SAID_WORKERS, NULL,
     HOSTFILE},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_default_dash_host", NULL, FOREIGN_SAID_WORKERS, NULL,
     "-H HOST,..."},
    {FOREIGN_OPENMPI5, "PRTE_MCA_prte_default_hostfile", NULL, FOREIGN_SAID_WORKERS, NULL,
     HOSTFILE},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_tag_output", OFF, FOREIGN_SAID_OUTPUT, NULL, "--label"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_timestamp_output", OFF, FOREIGN_SAID_NOTHING, NULL,
     "drarun ... | ts (moreutils)"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_output_filename", NULL, FOREIGN_SAID_OUTPUT, NULL, FILES},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_abort_on_non_zero_status", ON, FOREIGN_SAID_FAILURE, GO_ON,
     OFF},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_mapping_policy", "slot", FOREIGN_SAID_WORKERS, NULL,
     MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_ranking_policy", "slot", FOREIGN_SAID_WORKERS, NULL,
     MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_hwloc_base_binding_policy", "none", FOREIGN_SAID_BIND, NULL,
     BINDING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_hwloc_base_report_bindings", OFF, FOREIGN_SAID_NOTHING, NULL,
     "--report-bindings"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_n_pernode", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_ppr_n_pernode", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_pattern", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_ppr_pattern", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_rank_file_path", NULL, FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_cpus_per_rank", "0 1", FOREIGN_SAID_BIND, NULL,
     BINDING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_hwloc_base_cpu_list", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_hwloc_base_cpu_set", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_hwloc_base_use_hwthreads_as_cpus", OFF, FOREIGN_SAID_BIND, NULL,
     BINDING},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_display_map", OFF, FOREIGN_SAID_NOTHING, NULL,
     "--report-bindings"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_rmaps_base_no_oversubscribe", OFF, FOREIGN_SAID_WORKERS, NULL,
     "more ranks than CPUs are always allowed; --ranks-per-worker R is a limit"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_xterm", NULL, FOREIGN_SAID_NOTHING, NULL,
     "drarun -n 2 xterm -e PROGRAM"},
    {FOREIGN_OPENMPI4, "OMPI_MCA_orte_enable_recovery", OFF, FOREIGN_SAID_FAILURE, NULL,
     "no rank is started again; --on-rank-failure continue lets the others go on"},
    {FOREIGN_OPENMPI5, "PRTE_MCA_rmaps_default_mapping_policy", "slot :oversubscribe",
     FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_OPENMPI5, "PRTE_MCA_rmaps_default_ranking_policy", "slot", FOREIGN_SAID_WORKERS, NULL,
     MAPPING},
    {FOREIGN_OPENMPI5, "PRTE_MCA_hwloc_default_binding_policy", "none", FOREIGN_SAID_BIND, NULL,
     BINDING},

    {FOREIGN_SRUN, "SLURM_NTASKS", "1", FOREIGN_SAID_RANKS, NULL, "-n N"},
    {FOREIGN_SRUN, "SLURM_JOB_NUM_NODES", "1", FOREIGN_SAID_HOSTS, NULL, FOREIGN_START_AGENTS},
    {FOREIGN_SRUN, "SLURM_NTASKS_PER_NODE", NULL, FOREIGN_SAID_RANKS, NULL, "--ranks-per-worker R"},
    {FOREIGN_SRUN, "SLURM_CPUS_PER_TASK", "1", FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_SRUN, "SLURM_CPU_BIND", "none no", FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_SRUN, "SLURM_HINT", NULL, FOREIGN_SAID_BIND, NULL, BINDING},
    {FOREIGN_SRUN, "SLURM_DISTRIBUTION", "block", FOREIGN_SAID_WORKERS, NULL, MAPPING},
    {FOREIGN_SRUN, "SLURM_LABELIO", OFF, FOREIGN_SAID_OUTPUT, NULL, "--label"},
    {FOREIGN_SRUN, "SLURM_STDOUTMODE", "all", FOREIGN_SAID_OUTPUT, NULL, FILES},
    {FOREIGN_SRUN, "SLURM_STDERRMODE", "all", FOREIGN_SAID_OUTPUT, NULL, FILES},
    {FOREIGN_SRUN, "SLURM_STDINMODE", "0", FOREIGN_SAID_NOTHING, NULL, "--stdin RANK, all or none"},
    {FOREIGN_SRUN, "SLURM_TIMELIMIT", NULL, FOREIGN_SAID_TIMEOUT, NULL, "--timeout 10m"},
    {FOREIGN_SRUN, "SLURM_KILL_BAD_EXIT", "1", FOREIGN_SAID_FAILURE, GO_ON, "0"},
    {FOREIGN_SRUN, "SLURM_EXPORT_ENV", "ALL", FOREIGN_SAID_NOTHING, NULL,
     "-genvnone, -genvlist A,B and -x NAME=VALUE"},
    {FOREIGN_SRUN, "SLURM_WORKING_DIR", NULL, FOREIGN_SAID_NOTHING, NULL, "--wd DIR"},
};

const size_t foreign_variable_count = ARRAY_LEN(foreign_variables);

void foreign_variables_table(unsigned int from, struct buf *out)
{
    bool any = false;
    for (size_t i = 0; i < foreign_variable_count; i++) {
        const struct foreign_variable *variable = &foreign_variables[i];
        if (!(variable->from & from))
            continue;
        if (!any)
            buf_printf(out, "| variable of %s | drarun |\n|---|---|\n",
                       foreign_launcher_name(from));
        any = true;
        buf_printf(out, "| `%s` | ", variable->name);
        const char *equals = variable->ours ? strchr(variable->ours, '=') : NULL;
        if (equals)
            buf_printf(out, "as `%.*s %s`, unless that is given, with the values ",
                       (int)(equals - variable->ours), variable->ours, equals + 1);
        else if (variable->ours)
            buf_printf(out, "as `%s`, in seconds, unless that is given", variable->ours);
        else
            buf_add_str(out, "not read: ");
        foreign_add_cell(variable->text, out);
        buf_add_str(out, " |\n");
    }
}
