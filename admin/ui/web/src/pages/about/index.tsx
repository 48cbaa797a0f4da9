import { useState } from 'react';
import { useRead, request } from '../../api';
import { pulse } from '../../app/pulse';
import { base, useStore, version } from '../../lib';
import { Button } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { text } from './text';

export const pages = { '/about': About };

function About() {
  const server = useStore(pulse)?.version;
  const [open, setOpen] = useState(false);
  return (
    <Page title={text.title}>
      <Card title={text.versions}>
        <Facts
          of={[
            [text.pages, version],
            [text.server, server ?? '–'],
          ]}
        />
        <p>
          <a href={`${base}api/openapi.json`}>{text.description}</a>
        </p>
      </Card>
      <Card
        title={text.licences}
        actions={
          <Button dense aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? text.hide : text.show}
          </Button>
        }
      >
        <p>{text.licencesHelp}</p>
        {open && <Licences />}
      </Card>
    </Page>
  );
}

function Licences() {
  const licences = useRead(['licences'], (signal) => request<string>('GET', '/assets/licenses.md', { signal }), { staleTime: Infinity });
  return (
    <Loaded query={licences} what={text.licences}>
      {(all) => <pre tabIndex={0}>{all}</pre>}
    </Loaded>
  );
}
