//! What carries messages where all ranks are on one host: a library may go through memory where sockets go through the kernel,
//! and a difference between them is then that as well.

use crate::result::{ResultFile, distinct};

/// Variables by which users tell MPI libraries what carries messages within a host, the most telling first.
const CHOOSERS: [&str; 5] =
    ["OMPI_MCA_btl", "UCX_TLS", "I_MPI_FABRICS", "MPIR_CVAR_NOLOCAL", "MPIR_CVAR_CH4_SHM_ENABLE"];

impl ResultFile {
    /// What carried the messages of a job on one host, network by network; nothing of other jobs, where what is between
    /// hosts does.
    pub fn carried(&self) -> Option<String> {
        if self.system.hosts != Some(1) || self.machine.is_some() {
            return None;
        }
        let over = self.runs.iter().flat_map(|run| std::iter::once(&run.transport).chain(&run.congestors_over));
        let mut told = Vec::new();
        for transport in over {
            let chosen = || CHOOSERS.iter().find_map(|name| Some((name, self.system.environment.get(*name)?)));
            told.push(match transport.backend.as_str() {
                "mpi" => match chosen() {
                    Some((name, value)) => format!("mpi by what {name}={value} allows"),
                    None => "mpi by shared memory (default)".into(),
                },
                "tcp" => "tcp by kernel sockets".to_owned(),
                "libfabric" => match transport.details.get("provider") {
                    Some(provider) => format!("libfabric by its provider {provider}"),
                    None => continue,
                },
                "verbs" => "verbs by the adapter".into(),
                _ => continue,
            });
        }
        let told = distinct(told);
        (!told.is_empty()).then(|| format!("On one host, no network: {}", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use crate::assemble::synthetic;

    #[test]
    fn on_one_host_it_is_said_what_carries_messages() {
        let mut file = synthetic::file("mpi", None, 3.0);
        file.runs.extend(synthetic::file("tcp", Some("eager"), 3.0).runs);
        assert_eq!(file.carried(), None, "not known");
        file.system.hosts = Some(2);
        assert_eq!(file.carried(), None);
        file.system.hosts = Some(1);
        let said = file.carried().unwrap();
        assert_eq!(said, "On one host, no network: mpi by shared memory (default), tcp by kernel sockets");
        file.system.environment.insert("OMPI_MCA_btl".into(), "tcp,self".into());
        let said = file.carried().unwrap();
        assert!(said.contains("mpi by what OMPI_MCA_btl=tcp,self allows, tcp by "), "{said}");
    }
}
